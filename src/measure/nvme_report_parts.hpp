#pragma once
// What the table, the comparison and the picture of an NvmeReport share.

#include <algorithm>
#include <string>
#include <vector>

#include "strata/measure/nvme_report.hpp"

namespace strata {

inline constexpr double bytes_per_gb = 1e9;
inline constexpr const char* new_files_title = "write, new files";

// Targets in the order of their first result; "all" is last because the results are.
std::vector<std::string> nvme_targets(const std::vector<NvmeResult>& results);
std::string nvme_target_title(const std::string& target);  // "all drives" for "all"
const NvmeResult* find_nvme_result(const std::vector<NvmeResult>& results, NvmePattern pattern,
                                   const std::string& target);

std::string gb_per_s(double bytes_per_s);            // "3.52"
std::string gb_per_s_range(const Samples& samples);  // "3.52 (3.40-3.60)"

// One pattern on one target as block x depth, both ascending.
struct SweepGrid {
  NvmePattern pattern = NvmePattern::read;
  std::string target;
  std::vector<std::uint64_t> blocks;
  std::vector<int> depths;
  std::vector<std::vector<double>> bytes_per_s;  // [block][depth], medians; NaN: not measured
  double best() const;                           // the highest of them
};
std::vector<SweepGrid> sweep_grids(const std::vector<NvmeResult>& sweep);

}  // namespace strata
