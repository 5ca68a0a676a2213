#include "knee.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "strata/measure/samples.hpp"

namespace strata {
namespace {

constexpr double fall_to_max = 0.8;
constexpr std::size_t window = 5;  // a dip must be longer than half of it to be seen

// Intervals on either side of a knee: fewer are chance, the more so in a long curve.
std::size_t level_min(std::size_t intervals) { return std::max<std::size_t>(3, intervals / 20); }

double median_of(std::span<const double> values) {
  return Samples{{values.begin(), values.end()}}.median();
}

// The running median: outliers and short dips go, edges stay where they are.
std::vector<double> without_dips(std::span<const double> rates) {
  std::vector<double> smooth;
  for (std::size_t at = 0; at < rates.size(); ++at) {
    const std::size_t reach = std::min({window / 2, at, rates.size() - 1 - at});
    smooth.push_back(median_of(rates.subspan(at - reach, 2 * reach + 1)));
  }
  return smooth;
}

// Where two levels describe the curve best: the split with the largest part of the variance between
// its sides. 0: none.
std::size_t best_split(std::span<const double> rates, std::size_t level) {
  double total = 0, before = 0, best_gain = 0;
  for (const double rate : rates) total += rate;
  std::size_t best = 0;
  for (std::size_t at = 1; at < rates.size(); ++at) {
    before += rates[at - 1];
    const auto left = static_cast<double>(at), right = static_cast<double>(rates.size() - at);
    const double gap = before / left - (total - before) / right;
    const double gain = gap > 0 ? gap * gap * left * right : 0;
    if (gain <= best_gain || at < level || rates.size() - at < level) continue;
    best_gain = gain;
    best = at;
  }
  return best;
}

bool stays_below(std::span<const double> after, double limit) {
  return median_of(after) < limit && median_of(after.subspan(after.size() / 2)) < limit;
}

double quartile(std::span<const double> values, std::size_t which) {
  std::vector<double> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  return sorted[which * (sorted.size() - 1) / 4];
}

// Three quarters of one side are above three quarters of the other: the levels are no accident of
// noise.
bool are_apart(std::span<const double> before, std::span<const double> after) {
  return quartile(before, 1) > quartile(after, 3);
}

// A curve as it was measured, and without its dips.
struct Curve {
  std::span<const double> rates, smooth;
  Curve first(std::size_t size) const { return {rates.first(size), smooth.first(size)}; }
};

std::size_t knee_of(const Curve& curve, std::size_t level) {
  const std::size_t split = best_split(curve.smooth, level);
  if (split == 0) return 0;
  const double limit = fall_to_max * median_of(curve.smooth.first(split));
  if (!stays_below(curve.smooth.subspan(split), limit)) return 0;
  if (!are_apart(curve.rates.first(split), curve.rates.subspan(split))) return 0;
  // What follows is lower still, so a fall within the first part is one for good as well.
  const std::size_t earlier = knee_of(curve.first(split), level);
  return earlier > 0 ? earlier : split;
}

}  // namespace

std::optional<std::uint64_t> find_knee(std::span<const double> rates) {
  const std::vector<double> smooth = without_dips(rates);
  const std::size_t knee = knee_of({rates, smooth}, level_min(rates.size()));
  return knee > 0 ? std::optional<std::uint64_t>(knee) : std::nullopt;
}

}  // namespace strata
