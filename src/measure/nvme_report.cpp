#include "strata/measure/nvme_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "nvme_report_parts.hpp"
#include "strata/core/digits.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

template <typename T>
void insert_sorted(std::vector<T>& values, T value) {
  const auto at = std::ranges::lower_bound(values, value);
  if (at == values.end() || *at != value) values.insert(at, value);
}

template <typename T>
std::size_t index_of(const std::vector<T>& sorted, T value) {
  return static_cast<std::size_t>(std::ranges::lower_bound(sorted, value) - sorted.begin());
}

bool is_of(const NvmeResult& result, NvmePattern pattern, const std::string& target) {
  return result.pattern == pattern && result.target == target;
}

SweepGrid make_grid(const std::vector<NvmeResult>& sweep, NvmePattern pattern,
                    const std::string& target) {
  SweepGrid grid{pattern, target, {}, {}, {}};
  for (const NvmeResult& result : sweep) {
    if (!is_of(result, pattern, target)) continue;
    insert_sorted(grid.blocks, result.block_bytes);
    insert_sorted(grid.depths, result.depth);
  }
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  grid.bytes_per_s.assign(grid.blocks.size(), std::vector<double>(grid.depths.size(), none));
  for (const NvmeResult& result : sweep)
    if (is_of(result, pattern, target))
      grid.bytes_per_s[index_of(grid.blocks, result.block_bytes)]
                      [index_of(grid.depths, result.depth)] = result.bytes_per_s.median();
  return grid;
}

}  // namespace

std::string_view nvme_pattern_name(NvmePattern pattern) {
  switch (pattern) {
    case NvmePattern::read:
      return "read";
    case NvmePattern::write:
      return "write";
    case NvmePattern::mixed:
      return "mixed";
  }
  return "?";
}

NvmePattern parse_nvme_pattern(std::string_view name) {
  for (const NvmePattern pattern : nvme_patterns)
    if (nvme_pattern_name(pattern) == name) return pattern;
  throw ConfigError(fmt::format("unknown pattern '{}': read, write or mixed", name));
}

std::vector<std::string> nvme_targets(const std::vector<NvmeResult>& results) {
  std::vector<std::string> targets;
  for (const NvmeResult& result : results)
    if (std::ranges::find(targets, result.target) == targets.end())
      targets.push_back(result.target);
  return targets;
}

std::string nvme_target_title(const std::string& target) {
  return target == all_drives ? "all drives" : target;
}

const NvmeResult* find_nvme_result(const std::vector<NvmeResult>& results, NvmePattern pattern,
                                   const std::string& target) {
  const auto found = std::ranges::find_if(
      results, [&](const NvmeResult& result) { return is_of(result, pattern, target); });
  return found == results.end() ? nullptr : &*found;
}

std::string gb_per_s(double bytes_per_s) { return three_digits(bytes_per_s / bytes_per_gb); }

std::string gb_per_s_range(const Samples& samples) {
  return fmt::format("{} ({}-{})", gb_per_s(samples.median()), gb_per_s(samples.min()),
                     gb_per_s(samples.max()));
}

double SweepGrid::best() const {
  double best = -1;
  for (const auto& row : bytes_per_s)
    for (const double value : row)
      if (value > best) best = value;
  return best;
}

std::vector<SweepGrid> sweep_grids(const std::vector<NvmeResult>& sweep) {
  std::vector<SweepGrid> grids;
  for (const std::string& target : nvme_targets(sweep))
    for (const NvmePattern pattern : nvme_patterns)
      if (find_nvme_result(sweep, pattern, target) != nullptr)
        grids.push_back(make_grid(sweep, pattern, target));
  return grids;
}

}  // namespace strata
