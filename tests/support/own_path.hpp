#pragma once
// Where a test may write: nobody else does, also of another build's tests that run beside it.

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace strata {

inline std::filesystem::path own_path(const std::string& name) {
  return std::filesystem::path(::testing::TempDir()) /
         ("strata-" + std::to_string(::getpid()) + "-" + name);
}

}  // namespace strata
