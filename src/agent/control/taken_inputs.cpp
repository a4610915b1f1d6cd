#include "agent/control/taken_inputs.hpp"

#include <algorithm>
#include <string_view>

namespace dockbridge::agent {

namespace {

std::string_view text(const std::array<char, k_digest_length>& digest) {
  return {digest.data(), digest.size()};
}

auto position(const std::vector<TakenInput>& taken, const OnceHeader& header) {
  return std::find_if(taken.begin(), taken.end(), [&](const TakenInput& one) { return one.key == text(header.key); });
}

}  // namespace

TakenInputs::Found TakenInputs::find(const OnceHeader& header, std::uint64_t units) const {
  const auto known = position(m_taken, header);
  if (known == m_taken.end()) {
    return {};
  }
  if (known->call != text(header.call)) {
    return {Before::another_call, 0};
  }
  // A sender that only asks sends no units. Other units are new if they begin where the taken ones end.
  if (header.at < known->units || units == 0) {
    return {Before::yes, std::min(units, known->units - std::min(known->units, header.at))};
  }
  return {};
}

void TakenInputs::add(const OnceHeader& header, std::uint64_t units) {
  if (units == 0) {
    return;
  }
  if (const auto known = position(m_taken, header); known != m_taken.end()) {
    m_taken[static_cast<std::size_t>(known - m_taken.begin())].units = header.at + units;
    return;
  }
  if (m_taken.size() == k_max_taken_keys) {
    m_taken.erase(m_taken.begin());
  }
  m_taken.push_back({std::string(text(header.key)), std::string(text(header.call)), header.at + units, header.seen_out,
                     header.seen_err});
}

OnceAnswer TakenInputs::answer(const OnceHeader& header, Before before) const {
  OnceAnswer answer;
  answer.before = static_cast<std::uint8_t>(before);
  if (const auto known = position(m_taken, header); known != m_taken.end() && before != Before::another_call) {
    answer.units = known->units;
    answer.seen_out = known->seen_out;
    answer.seen_err = known->seen_err;
  }
  return answer;
}

}  // namespace dockbridge::agent
