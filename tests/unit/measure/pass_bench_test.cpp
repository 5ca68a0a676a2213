// bench_memory() and bench_adam(): what they measure and what they refuse. How fast this machine is
// is nobody's test.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "src/measure/ping_pong.hpp"
#include "strata/core/error.hpp"
#include "strata/measure/adam_bench.hpp"
#include "strata/measure/memory_bench.hpp"

namespace strata {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::IsSupersetOf;
using ::testing::Le;
using ::testing::SizeIs;

MemoryBenchOptions small_memory() {
  MemoryBenchOptions options;
  options.array_bytes = 2 << 20;
  options.threads = {1, 2};
  options.repeats = 2;
  return options;
}

AdamBenchOptions small_adam() {
  AdamBenchOptions options;
  options.layouts = {parse_state_layout("bf16/split/q8", UpdateRule::adamw),
                     parse_state_layout("bf16/f32/f32", UpdateRule::sgd)};
  options.counts = {100'000};
  options.threads = {2};
  options.repeats = 3;
  return options;
}

std::vector<std::string> names_of(const PassReport& report) {
  std::vector<std::string> names;
  for (const PassResult& result : report.results) names.push_back(result.pass);
  return names;
}

TEST(MemoryBench, MeasuresStreamAndTheOptimizersPassesByEachNumberOfThreads) {
  const PassReport report = bench_memory(small_memory());
  EXPECT_EQ(report.bench, PassBench::memory);
  const auto names = names_of(report);
  EXPECT_THAT(names,
              IsSupersetOf({"read", "fill", "copy", "copy, streamed", "scale", "add", "triad",
                            "triad, streamed", "change", "AdamW bf16/split/q8, no arithmetic"}));
  EXPECT_EQ(names.size(), 2 * std::set<std::string>(names.begin(), names.end()).size());
  for (const PassResult& result : report.results) {
    EXPECT_THAT(result.seconds.values, SizeIs(2)) << result.pass;
    EXPECT_GT(result.seconds.min(), 0) << result.pass;
    EXPECT_GT(result.count, 0u) << result.pass;
  }
}

TEST(MemoryBench, CountsFetchedLinesOfNormalStoresOnly) {
  std::map<std::string, double> fetched;
  for (const PassResult& result : bench_memory(small_memory()).results)
    fetched[result.pass] = result.allocate_bytes_per_element;
  EXPECT_EQ(fetched["triad"], 8);
  EXPECT_EQ(fetched["triad, streamed"], 0);
  EXPECT_EQ(fetched["change"], 0);
  EXPECT_EQ(fetched["read"], 0);
}

TEST(MemoryBench, RefusesSizesThreadsAndRepeatsOutOfRange) {
  for (const auto spoil : {+[](MemoryBenchOptions& o) { o.array_bytes = 4096; },
                           +[](MemoryBenchOptions& o) { o.threads = {0}; },
                           +[](MemoryBenchOptions& o) { o.repeats = 0; }}) {
    MemoryBenchOptions options = small_memory();
    spoil(options);
    EXPECT_THROW(bench_memory(options), ConfigError);
  }
  MemoryBenchOptions options = small_memory();
  options.array_bytes = 512ull << 30;
  EXPECT_THROW(bench_memory(options), OutOfMemory);
}

TEST(AdamBench, MeasuresEachLayoutAndEachKindOfGradientOnce) {
  const PassReport report = bench_adam(small_adam());
  EXPECT_EQ(report.bench, PassBench::adam);
  EXPECT_THAT(names_of(report),
              ElementsAre("norm of bf16 gradient", "adamw bf16/split/q8", "sgd bf16/f32/f32"));
  for (const PassResult& result : report.results) {
    EXPECT_THAT(result.seconds.values, SizeIs(3));
    EXPECT_THAT(result.roofline_seconds.values, SizeIs(3));
    EXPECT_EQ(result.count, 100'000u);
    EXPECT_EQ(result.threads, 2);
  }
  EXPECT_EQ(report.results[2].bytes_per_element, 2 + 2 * 8 + 2);
}

TEST(AdamBench, RefusesCountsOutOfRangeAndBeyondTheMemory) {
  AdamBenchOptions options = small_adam();
  options.counts = {10};
  EXPECT_THROW(bench_adam(options), ConfigError);
  options.counts = {900'000'000'000};
  EXPECT_THROW(bench_adam(options), OutOfMemory);
}

TEST(PassBenches, TellHowFarTheyAre) {
  AdamBenchOptions options = small_adam();
  std::vector<double> done;
  std::set<std::string> what;
  options.watch.progress = [&](const std::string& now, double share) {
    done.push_back(share);
    what.insert(now);
  };
  bench_adam(options);
  EXPECT_THAT(done, ::testing::Each(AllOf(Ge(0), Le(1))));
  EXPECT_TRUE(std::ranges::is_sorted(done));
  EXPECT_GT(done.back(), 0.8);
  EXPECT_EQ(what.size(), 3u);
}

TEST(PassBenches, EndEarlyWhenAskedTo) {
  const std::atomic<bool> stop{true};
  AdamBenchOptions adam = small_adam();
  adam.watch.stop = &stop;
  EXPECT_THROW(bench_adam(adam), Interrupted);
  MemoryBenchOptions memory = small_memory();
  memory.watch.stop = &stop;
  EXPECT_THROW(bench_memory(memory), Interrupted);
}

TEST(PingPong, IsPlayedByTwoCores) {
  const auto cores = ping_cores();
  if (!cores) GTEST_SKIP() << "one core has nobody to play with";
  EXPECT_NE(cores->first, cores->second);
  EXPECT_GT(ping_pong_ns(*cores), 1);
}

TEST(PingPong, NamesItsCores) {
  EXPECT_EQ(format_ping_cores(PingCores{0, 7}), "0 and 7");
  EXPECT_EQ(format_ping_cores(std::nullopt), "");
}

}  // namespace
}  // namespace strata
