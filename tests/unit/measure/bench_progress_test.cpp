#include "src/measure/bench_progress.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "strata/core/error.hpp"

namespace strata {
namespace {

struct Shown {
  std::string what;
  double done;
};

TEST(BenchProgress, RisesWithThePlannedSecondsOfItsSteps) {
  std::vector<Shown> shown;
  BenchProgress progress({.progress = [&](const std::string& what, double done) {
    shown.push_back({what, done});
  }});
  progress.plan(10);
  progress.begin("writing", 4);
  progress.at(2);
  progress.at(100);  // Longer than planned.
  progress.begin("reading", 6);
  progress.at_share(0.5);
  ASSERT_EQ(shown.size(), 5u);
  EXPECT_EQ(shown[0].what, "writing");
  EXPECT_DOUBLE_EQ(shown[0].done, 0);
  EXPECT_DOUBLE_EQ(shown[1].done, 0.2);
  EXPECT_DOUBLE_EQ(shown[2].done, 0.4);
  EXPECT_EQ(shown[3].what, "reading");
  EXPECT_DOUBLE_EQ(shown[3].done, 0.4);
  EXPECT_DOUBLE_EQ(shown[4].done, 0.7);
}

TEST(BenchProgress, NeverPassesTheEnd) {
  double last = 0;
  BenchProgress progress({.progress = [&](const std::string&, double done) { last = done; }});
  progress.plan(1);
  progress.begin("a", 1);
  progress.begin("b", 1);
  progress.at(1);
  EXPECT_DOUBLE_EQ(last, 1);
}

TEST(BenchProgress, ThrowsWhenAskedToStop) {
  std::atomic<bool> stop{false};
  BenchProgress progress({.stop = &stop});
  progress.plan(1);
  progress.begin("reading /data", 1);
  stop = true;
  try {
    progress.at(0.5);
    FAIL() << "not interrupted";
  } catch (const Interrupted& interrupted) {
    EXPECT_STREQ(interrupted.what(), "interrupted while measuring: reading /data");
  }
}

}  // namespace
}  // namespace strata
