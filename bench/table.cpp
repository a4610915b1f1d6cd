#include "table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

namespace dockbridge::bench {

namespace {

using Row = std::array<std::string, 4>;

Row row_of(const Figure& figure) {
  return {figure.what, figure.measured, figure.bound, figure.met ? "yes" : "NO"};
}

}  // namespace

void print_table(const std::vector<Figure>& figures) {
  std::vector<Row> rows = {{"what", "measured", "bound", "met"}};
  for (const Figure& figure : figures) {
    rows.push_back(row_of(figure));
  }
  std::array<std::size_t, 4> widths{};
  for (const Row& row : rows) {
    for (std::size_t column = 0; column < row.size(); ++column) {
      widths[column] = std::max(widths[column], row[column].size());
    }
  }
  for (const Row& row : rows) {
    fmt::print("{:<{}}  {:<{}}  {:<{}}  {}\n", row[0], widths[0], row[1], widths[1], row[2], widths[2], row[3]);
  }
}

Samples::Duration Samples::quantile(double part) const {
  if (m_samples.empty()) {
    throw std::runtime_error("nothing was measured");
  }
  std::vector<Duration> sorted = m_samples;
  std::sort(sorted.begin(), sorted.end());
  return sorted[static_cast<std::size_t>(part * static_cast<double>(sorted.size() - 1))];
}

}  // namespace dockbridge::bench
