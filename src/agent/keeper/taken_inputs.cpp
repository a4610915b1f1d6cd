#include "agent/keeper/taken_inputs.hpp"

#include <algorithm>
#include <string_view>

namespace dockbridge::agent {

namespace {

std::string_view text(const std::array<char, k_digest_length>& digest) {
  return {digest.data(), digest.size()};
}

auto position(const std::vector<TakenInput>& taken, const OnceHeader& step) {
  return std::find_if(taken.begin(), taken.end(), [&](const TakenInput& one) { return one.key == text(step.key); });
}

}  // namespace

TakenInputs::Found TakenInputs::find(const OnceHeader& step, std::uint64_t units) const {
  const auto known = position(m_taken, step);
  if (known == m_taken.end()) {
    return {};
  }
  if (known->call != text(step.call)) {
    return {Before::another_call, 0};
  }
  // Who only asks sends nothing. Otherwise it is new if it goes on where the units end that were taken.
  if (step.at < known->units || units == 0) {
    return {Before::yes, std::min(units, known->units - std::min(known->units, step.at))};
  }
  return {};
}

void TakenInputs::add(const OnceHeader& step, std::uint64_t units) {
  if (units == 0) {
    return;
  }
  if (const auto known = position(m_taken, step); known != m_taken.end()) {
    m_taken[static_cast<std::size_t>(known - m_taken.begin())].units = step.at + units;
    return;
  }
  if (m_taken.size() == k_most) {
    m_taken.erase(m_taken.begin());
  }
  m_taken.push_back(
      {std::string(text(step.key)), std::string(text(step.call)), step.at + units, step.seen_out, step.seen_err});
}

OnceAnswer TakenInputs::answer(const OnceHeader& step, Before before) const {
  OnceAnswer answer;
  answer.before = static_cast<std::uint8_t>(before);
  if (const auto known = position(m_taken, step); known != m_taken.end() && before != Before::another_call) {
    answer.units = known->units;
    answer.seen_out = known->seen_out;
    answer.seen_err = known->seen_err;
  }
  return answer;
}

}  // namespace dockbridge::agent
