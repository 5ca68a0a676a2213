#include "strata/measure/samples.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace strata {

double Samples::median() const {
  if (values.empty()) return 0;
  std::vector<double> sorted = values;
  std::ranges::sort(sorted);
  const std::size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

double Samples::min() const { return values.empty() ? 0 : std::ranges::min(values); }

double Samples::max() const { return values.empty() ? 0 : std::ranges::max(values); }

double Samples::stdev() const {
  if (values.size() < 2) return 0;
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / (count - 1));
}

}  // namespace strata
