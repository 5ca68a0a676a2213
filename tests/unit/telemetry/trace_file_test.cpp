#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "strata/core/error.hpp"
#include "strata/telemetry/trace.hpp"
#include "support/file_size_limit.hpp"
#include "support/own_path.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class TraceFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = own_path("trace.json");
    fs::remove(path_);
  }
  void TearDown() override { fs::remove(path_); }
  json events() const {
    std::ifstream stream(path_);
    return json::parse(stream);
  }
  fs::path path_;
};

TEST_F(TraceFileTest, IsAnEmptyArrayFromTheStart) {
  const TraceFile trace(path_);
  EXPECT_EQ(events(), json::array());
}

TEST_F(TraceFileTest, WritesASpanInMicrosecondsWithFractions) {
  TraceFile trace(path_);
  trace.span({.process = 0,
              .row = 3,
              .name = "forward",
              .category = "run",
              .start_s = 1.5e-3,
              .seconds = 2.125e-6,
              .arguments = {{"bytes", "12"}}});
  trace.close();
  EXPECT_EQ(events(), json::parse(R"([{"ph": "X", "pid": 1, "tid": 3, "ts": 1500.0, "dur": 2.125,
      "name": "forward", "cat": "run", "args": {"bytes": 12}}])"));
}

TEST_F(TraceFileTest, WritesAnArgumentOfDigitsAsTheNumberThatItIs) {
  TraceFile trace(path_);
  trace.span({.row = 1,
              .arguments = {{"zero", "0"},
                            {"most", "999999999999999"},
                            {"not exact", "9999999999999999"},
                            {"no number", "007"},
                            {"signed", "-1"},
                            {"fraction", "1.5"},
                            {"empty", ""}}});
  trace.close();
  EXPECT_EQ(events()[0]["args"], json::parse(R"({"zero": 0, "most": 999999999999999,
      "not exact": "9999999999999999", "no number": "007", "signed": "-1", "fraction": "1.5",
      "empty": ""})"));
}

TEST_F(TraceFileTest, NamesProcessesAndRowsAndSortsThem) {
  TraceFile trace(path_);
  trace.name_process(2, "rank 2");
  trace.name_row(2, 7, "h2d", 30);
  trace.close();
  EXPECT_EQ(events(), json::parse(R"([
      {"ph": "M", "pid": 3, "tid": 0, "name": "process_name", "args": {"name": "rank 2"}},
      {"ph": "M", "pid": 3, "tid": 0, "name": "process_sort_index", "args": {"sort_index": 2}},
      {"ph": "M", "pid": 3, "tid": 7, "name": "thread_name", "args": {"name": "h2d"}},
      {"ph": "M", "pid": 3, "tid": 7, "name": "thread_sort_index", "args": {"sort_index": 30}}])"));
}

TEST_F(TraceFileTest, WritesCountersAndFlows) {
  TraceFile trace(path_);
  trace.counter(0, "h2d", "bytes/s", 1e-3, 2.5e9);
  const TraceFile::Span from{.row = 1, .start_s = 0, .seconds = 1e-3};
  const TraceFile::Span to{.row = 2, .start_s = 2e-3, .seconds = 1e-3};
  trace.flow(7, from, to);
  trace.close();
  EXPECT_EQ(events(), json::parse(R"([
      {"ph": "C", "pid": 1, "ts": 1000.0, "name": "h2d", "args": {"bytes/s": 2.5e9}},
      {"ph": "s", "pid": 1, "tid": 1, "ts": 999.999, "id": 7, "name": "first use", "cat": "flow"},
      {"ph": "f", "bp": "e", "pid": 1, "tid": 2, "ts": 2000.0, "id": 7, "name": "first use",
       "cat": "flow"}])"));
}

TEST_F(TraceFileTest, EscapesWhateverANameHolds) {
  const std::string hostile = "a\"b\\c\n\t\x01</script>\xff end";
  TraceFile trace(path_);
  trace.name_process(0, hostile);
  trace.span({.row = 1, .name = hostile, .category = hostile, .arguments = {{hostile, hostile}}});
  trace.counter(0, hostile, "bytes", 0, 1);
  trace.close();
  const json found = events();
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(found[2]["name"], "a\"b\\c\n\t\x01</script>\xef\xbf\xbd end");
  EXPECT_EQ(found[2]["args"].size(), 1u);
}

TEST_F(TraceFileTest, IsValidAtEachFlush) {
  TraceFile trace(path_);
  for (std::size_t i = 1; i <= 3; ++i) {
    trace.counter(0, "c", "bytes", static_cast<double>(i), 0);
    EXPECT_EQ(events().size(), i - 1);
    trace.flush();
    EXPECT_EQ(events().size(), i);
  }
}

TEST_F(TraceFileTest, FlushesByItselfOnceThereIsMuch) {
  TraceFile trace(path_);
  for (int i = 0; i < 20'000; ++i) trace.counter(0, "counter", "bytes", i, i);
  const std::size_t in_file = events().size();
  EXPECT_GT(in_file, 10'000u);
  trace.close();
  EXPECT_EQ(events().size(), 20'000u);
}

TEST_F(TraceFileTest, IsValidWithWhatWasFlushedWhenItsProcessIsKilled) {
  const pid_t child = ::fork();
  if (child == 0) {
    TraceFile trace(path_);
    trace.counter(0, "flushed", "bytes", 1, 0);
    trace.flush();
    trace.counter(0, "buffered", "bytes", 2, 0);
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  ASSERT_EQ(events().size(), 1u);
  EXPECT_EQ(events()[0]["name"], "flushed");
}

// Each event is whole, and all are there, whoever writes meanwhile.
TEST_F(TraceFileTest, TakesWhatSeveralRanksWriteAtOnce) {
  TraceFile trace(path_);
  {
    std::vector<std::jthread> ranks;
    for (int rank = 0; rank < 4; ++rank)
      ranks.emplace_back([&trace, rank] {
        trace.name_process(rank, "rank " + std::to_string(rank));
        for (int i = 0; i < 200; ++i) {
          const TraceFile::Span from{rank, 1, "op", "run", 1e-3 * i, 1e-4};
          const TraceFile::Span to{rank, 2, "op", "run", 1e-3 * i + 2e-4, 1e-4};
          trace.span(from);
          trace.span(to);
          trace.flow(static_cast<std::uint64_t>(1000 * rank + i), from, to);
          if (i % 10 == 0) trace.flush();
        }
        EXPECT_EQ(trace.failure(), "");
      });
  }
  trace.close();
  std::map<int, int> spans;
  for (const auto& event : events())
    if (event["ph"] == "X") ++spans[event["pid"].get<int>()];
  EXPECT_EQ(spans, (std::map<int, int>{{1, 400}, {2, 400}, {3, 400}, {4, 400}}));
}

TEST_F(TraceFileTest, ReplacesALongerFile) {
  std::ofstream(path_) << std::string(10'000, 'x');
  TraceFile(path_).close();
  EXPECT_EQ(events(), json::array());
}

TEST_F(TraceFileTest, KeepsTouchingSpansTouchingOnTheSameRow) {
  TraceFile trace(path_);
  for (int i = 0; i < 1000; ++i)
    trace.span({.row = 1, .name = "n", .start_s = 1000 + i * 1.234567e-7, .seconds = 1.234567e-7});
  trace.close();
  std::int64_t end = 0;
  for (const json& event : events()) {
    const std::int64_t start = std::llround(event["ts"].get<double>() * 1e3);
    EXPECT_GE(start, end);
    end = start + std::llround(event["dur"].get<double>() * 1e3);
  }
}

TEST_F(TraceFileTest, LeavesOutWhatHasNoFiniteTimeOrValue) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  TraceFile trace(path_);
  trace.span({.row = 1, .name = "n", .start_s = nan});
  trace.span({.row = 1, .name = "n", .seconds = inf});
  trace.counter(0, "c", "bytes", 0, inf);
  trace.counter(0, "c", "bytes", -inf, 0);
  trace.flow(1, {.start_s = nan}, {});
  trace.span({.row = 1, .name = "backwards", .start_s = 2, .seconds = -1});
  trace.close();
  ASSERT_EQ(events().size(), 1u);
  EXPECT_EQ(events()[0]["dur"], 0.0);
}

TEST_F(TraceFileTest, NamesAFileThatCannotBeWritten) {
  try {
    TraceFile trace(path_ / "below" / "nothing.json");
    FAIL() << "no error";
  } catch (const SystemError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("nothing.json"));
  }
  EXPECT_THROW(TraceFile(fs::path(::testing::TempDir())), SystemError);
}

TEST_F(TraceFileTest, TellsOfAFullDiskAtTheStart) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  try {
    TraceFile trace("/dev/full");
    FAIL() << "no error";
  } catch (const SystemError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("No space left on device"));
  }
}

TEST_F(TraceFileTest, EndsValidWithTheFlushBeforeTheDiskWasFull) {
  TraceFile trace(path_);
  trace.counter(0, "fits", "bytes", 0, 1);
  trace.flush();
  {
    const FileSizeLimit limit(fs::file_size(path_) + 10);
    trace.counter(0, "fits not", "bytes", 0, 1);
    trace.flush();
  }
  trace.counter(0, "too late", "bytes", 0, 1);
  EXPECT_THROW(trace.close(), SystemError);
  ASSERT_EQ(events().size(), 1u);
  EXPECT_EQ(events()[0]["name"], "fits");
  trace.close();  // Told once.
}

}  // namespace
}  // namespace strata
