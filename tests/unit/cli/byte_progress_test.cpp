#include "src/cli/byte_progress.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>

namespace strata {
namespace {

using ::testing::MatchesRegex;

TEST(ByteProgress, SaysAfterwardsWhatItCameTo) {
  ByteProgress progress("loading", "state", nullptr);
  WatchedBytes bytes(2'000'000, progress.watch());
  bytes.moved(1'400'000);
  bytes.moved(600'000);
  EXPECT_THAT(progress.finish(), MatchesRegex("2\\.00 MB of state in .+s, .+B/s"));
}

TEST(ByteProgress, KeepsQuietInALogOfWhatTakesNoTime) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> log(std::tmpfile(), &std::fclose);
  ByteProgress progress("loading", "state", log.get());
  WatchedBytes bytes(100, progress.watch());
  for (int i = 0; i < 100; ++i) bytes.moved(1);
  progress.finish();
  EXPECT_EQ(std::ftell(log.get()), 0);
}

TEST(ByteProgress, HasNothingToShowWhereNothingMoves) {
  ByteProgress progress("loading", "weights", nullptr);
  WatchedBytes(0, progress.watch()).moved(0);
  EXPECT_THAT(progress.finish(), MatchesRegex("0 B of weights in .*, 0 B/s"));
}

}  // namespace
}  // namespace strata
