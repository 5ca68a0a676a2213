#include "strata/train/stall_policy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace strata {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class Stall : public ::testing::Test {
 protected:
  void pass(double seconds) { policy_(seconds, "write tiles at 4096, 65536 bytes"); }

  std::vector<std::string> said_;
  int ends_ = 0;
  StallPolicy policy_{30, [this](const std::string& text) { said_.push_back(text); },
                      [this] { ++ends_; }};
};

TEST_F(Stall, WarnsOnceWithWhatIsInFlight) {
  for (const double seconds : {30.1, 60.1, 90.1, 270.3, 329.9}) pass(seconds);
  EXPECT_THAT(said_, ElementsAre(AllOf(HasSubstr("warning"), HasSubstr("30 s"), HasSubstr("300 s"),
                                       HasSubstr("write tiles at 4096"))));
  EXPECT_EQ(ends_, 0);
}

TEST_F(Stall, NamesTheDriveByTheFileThatWaits) {
  policy_(30.1,
          "write to /out/checkpoint-8.partial/00000-master.bin: 4096 bytes at offset 0, for "
          "30 s; read of /nvme/tiles: 512 bytes at offset 0, for 2 s");
  EXPECT_THAT(said_.back(),
              HasSubstr("the drive of /out/checkpoint-8.partial/00000-master.bin has given"));
  policy_(30.1, "read of /nvme/tiles: 512 bytes at offset 0, for 30 s");
  EXPECT_THAT(said_.back(), HasSubstr("the drive of /nvme/tiles has given nothing back"));
}

TEST_F(Stall, WarnsAnewOfTheNextOne) {
  for (const double seconds : {30.1, 60.1, 30.2}) pass(seconds);
  EXPECT_EQ(said_.size(), 2u);
  for (const double seconds : {600.0, 300.0}) pass(seconds);
  EXPECT_EQ(said_.size(), 4u) << "the end of one, the warning of another that comes late";
}

TEST_F(Stall, EndsTheProcessWhenItsWarningHasBeenOutForTenTimesAsLong) {
  for (const double seconds : {30.0, 60.0, 300.0, 329.0}) pass(seconds);
  EXPECT_EQ(ends_, 0);
  EXPECT_THAT(said_, SizeIs(1));
  pass(330);
  EXPECT_EQ(ends_, 1);
  EXPECT_THAT(said_.back(), AllOf(HasSubstr("330 s"), HasSubstr("offload.io_stall_seconds"),
                                  HasSubstr("write tiles at 4096")));
}

TEST_F(Stall, NeverEndsTheProcessAtItsFirstCallHoweverLate) {
  pass(100000);
  EXPECT_EQ(ends_, 0);
  EXPECT_THAT(said_, ElementsAre(HasSubstr("warning")));
  pass(100299);
  EXPECT_EQ(ends_, 0);
  pass(100300);
  EXPECT_EQ(ends_, 1);
}

TEST_F(Stall, OfOneTransferOfADriveThatGivesOthersBackNeverEndsTheProcess) {
  for (int i = 0; i < 100; ++i) pass(2.5);
  EXPECT_EQ(ends_, 0);
  EXPECT_THAT(said_.back(), AllOf(HasSubstr("kept a transfer for more than 30 s"),
                                  HasSubstr("gave another one back 2.5 s ago")));
}

TEST(EndingStallPolicy, LeavesWithItsOwnExitCode) {
  StallPolicy policy = ending_stall_policy(0.5);
  policy(0.5, "read tiles at 0");
  EXPECT_EXIT(policy(5.5, "read tiles at 0"), ::testing::ExitedWithCode(exit_drive_stalled),
              "given nothing back for 6 s.*\n.*read tiles at 0");
}

}  // namespace
}  // namespace strata
