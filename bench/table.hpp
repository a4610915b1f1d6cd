#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace dockbridge::bench {

/// One line of the table: a bound, the measured value, and whether it is met.
struct Figure {
  std::string what;
  std::string measured;
  std::string bound;
  bool met = false;
};

void print_table(const std::vector<Figure>& figures);

/// Durations of repeated runs.
class Samples {
 public:
  using Duration = std::chrono::duration<double, std::milli>;

  void add(Duration duration) { m_samples.push_back(duration); }
  [[nodiscard]] std::size_t count() const { return m_samples.size(); }
  [[nodiscard]] Duration median() const { return quantile(0.5); }
  [[nodiscard]] Duration p90() const { return quantile(0.9); }
  [[nodiscard]] Duration worst() const { return quantile(1.0); }

 private:
  [[nodiscard]] Duration quantile(double part) const;
  std::vector<Duration> m_samples;
};

}  // namespace dockbridge::bench
