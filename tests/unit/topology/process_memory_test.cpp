#include "strata/topology/process_memory.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "strata/core/bytes.hpp"

namespace strata {
namespace {

TEST(ProcessMemory, RemembersTheMostThatWasResident) {
  const std::uint64_t before = most_resident_bytes();
  if (before == 0) GTEST_SKIP() << "the kernel does not say";
  const std::uint64_t bytes = before + 16 * MiB;
  { const std::vector<char> touched(bytes, 1); }
  EXPECT_GE(most_resident_bytes(), bytes);
}

}  // namespace
}  // namespace strata
