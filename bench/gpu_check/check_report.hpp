#pragma once
// The table and the JSON of a check, from its rows.

#include <string>
#include <vector>

#include "gpu_check/check_row.hpp"

namespace strata {

struct CheckHead {
  std::string commit;      // of the bundle; empty: run from a build tree
  std::string started_at;  // ISO 8601, UTC
  std::string gpu;         // what stands for "which machine"; empty: none
  double seconds = 0, budget_seconds = 0;
};

const char* name_of(Outcome outcome);  // "not run"
std::string format_row(const CheckRow& row);
// Rows and, last, the sum: "12 passed, 1 failed, 5 not run in 212 s".
std::string format_table(const CheckHead& head, const std::vector<CheckRow>& rows);
// Bytes that are no UTF-8 are replaced, numbers that are not finite are null.
std::string format_json(const CheckHead& head, const std::vector<CheckRow>& rows);

int count(const std::vector<CheckRow>& rows, Outcome outcome);

}  // namespace strata
