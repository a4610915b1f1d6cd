#include "agent/files/search/found_path.hpp"

#include <algorithm>
#include <utility>

namespace dockbridge::agent {

namespace {

constexpr std::size_t k_most_kept = 100'000;
constexpr std::size_t k_most_bytes_kept = 16 * 1024 * 1024;

struct NameFinder {
  FirstItems<FoundPath> first;
  std::uint64_t total = 0;
};

}  // namespace

FoundPage find_page(int start_fd, const WalkOptions& options, unsigned threads, std::uint64_t offset, std::size_t max,
                    const std::function<bool(const WalkEntry&, std::int64_t& rank)>& rank_of) {
  FoundPage page;
  std::uint64_t passed = 0;
  FoundPath last;
  for (bool is_first_round = true, all_known = false; !all_known && page.paths.size() < max; is_first_round = false) {
    const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(offset + max - passed, k_most_kept));
    const FirstItems<FoundPath> none(most, k_most_bytes_kept / threads, is_first_round ? nullptr : &last);
    std::vector<NameFinder> finders(threads, {none});
    WalkTotals walked = walk_tree(start_fd, options, threads, [&](const WalkEntry& entry) {
      std::int64_t rank = 0;
      if (rank_of(entry, rank)) {
        NameFinder& finder = finders[entry.thread];
        ++finder.total;
        finder.first.add({rank, std::string(entry.path), entry.type});
      }
    });
    FirstItems<FoundPath> first = none;
    for (NameFinder& finder : finders) {
      first.merge(std::move(finder.first));
      page.total += is_first_round ? finder.total : 0;
    }
    if (is_first_round) {
      page.walked = std::move(walked);
    }
    all_known = !first.has_limit();
    std::vector<FoundPath> known = first.sorted();
    if (known.empty()) {
      break;
    }
    last = known.back();
    for (FoundPath& path : known) {
      if (passed++ >= offset && page.paths.size() < max) {
        page.paths.push_back(std::move(path));
      }
    }
  }
  return page;
}

}  // namespace dockbridge::agent
