#include "strata/train/stall_policy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace strata {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Stall : public testing::Test {
 protected:
  void pass(double seconds) { policy_(seconds, "write tiles at 4096, 65536 bytes"); }

  std::vector<std::string> said_;
  int ends_ = 0;
  StallPolicy policy_{30, [this](const std::string& text) { said_.push_back(text); },
                      [this] { ++ends_; }};
};

TEST_F(Stall, WarnsOnceWithWhatIsInFlight) {
  for (const double seconds : {30.1, 60.1, 90.1, 270.3}) pass(seconds);
  EXPECT_THAT(said_, ElementsAre(AllOf(HasSubstr("warning"), HasSubstr("30 s"), HasSubstr("300 s"),
                                       HasSubstr("write tiles at 4096"))));
  EXPECT_EQ(ends_, 0);
}

TEST_F(Stall, WarnsAnewOfTheNextOne) {
  for (const double seconds : {30.1, 60.1, 30.2}) pass(seconds);
  EXPECT_EQ(said_.size(), 2u);
}

TEST_F(Stall, EndsTheProcessAfterTenTimesAsLong) {
  pass(299.9);
  EXPECT_EQ(ends_, 0);
  EXPECT_THAT(said_, IsEmpty());
  pass(300);
  EXPECT_EQ(ends_, 1);
  EXPECT_THAT(said_, ElementsAre(AllOf(HasSubstr("300 s"), HasSubstr("offload.io_stall_seconds"),
                                       HasSubstr("write tiles at 4096"))));
}

TEST(EndingStallPolicy, LeavesWithItsOwnExitCode) {
  const StallPolicy policy = ending_stall_policy(0.5);
  EXPECT_EXIT(policy(5, "read tiles at 0"), testing::ExitedWithCode(exit_drive_stalled),
              "given nothing back for 5 s.*\n.*read tiles at 0");
}

}  // namespace
}  // namespace strata
