#include "strata/core/ieee_environment.hpp"

#include <gtest/gtest.h>

namespace strata {
namespace {

TEST(IeeeEnvironment, RoundsToNearestAndGivesTheCallersModeBack) {
  const int before = std::fegetround();
  std::fesetround(FE_UPWARD);
  {
    const IeeeEnvironment environment;
    EXPECT_EQ(std::fegetround(), FE_TONEAREST);
  }
  EXPECT_EQ(std::fegetround(), FE_UPWARD);
  std::fesetround(before);
}

}  // namespace
}  // namespace strata
