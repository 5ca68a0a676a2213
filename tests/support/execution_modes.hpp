#pragma once
// All modes of an Executor, for suites of tests that run in each.

#include <gtest/gtest.h>

#include <string>

#include "strata/runtime/executor.hpp"

namespace strata::testing {

inline auto all_modes() {
  return ::testing::Values(ExecutionMode::threaded, ExecutionMode::serial, ExecutionMode::seeded);
}

inline std::string mode_name(const ::testing::TestParamInfo<ExecutionMode>& mode) {
  return mode.param == ExecutionMode::threaded ? "Threaded"
         : mode.param == ExecutionMode::serial ? "Serial"
                                               : "Seeded";
}

}  // namespace strata::testing
