#pragma once
// What a GoogleTest program found, from the JSON that it writes.

#include <string>
#include <vector>

#include "gpu_check/check_row.hpp"

namespace strata {

// Suites whose name has one of the words make a row of the table. The last group, without words,
// takes what is left.
struct TestGroup {
  std::string part;
  std::vector<std::string> words;
};

// --gtest_filter for the tests of one of `groups`.
std::string gtest_filter(const TestGroup& group, const std::vector<TestGroup>& groups);

// A row per group: failed when a test failed; not run, with the reason of the first that was
// skipped, when none ran. `printed`: what the program wrote to its output. Throws nlohmann's
// exceptions when `report` is no such report.
std::vector<CheckRow> test_rows(const std::string& report, const std::string& printed,
                                const std::vector<TestGroup>& groups);

}  // namespace strata
