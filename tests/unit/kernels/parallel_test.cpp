#include "kernels/cpu/parallel.hpp"

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace strata::cpu {
namespace {

TEST(Parallel, RunsEveryTaskOnce) {
  for (int num_threads : {1, 2, 5}) {
    Parallel parallel(num_threads);
    EXPECT_EQ(parallel.num_threads(), num_threads);
    for (int num_tasks : {0, 1, 2, 1000}) {
      std::vector<int> runs(static_cast<std::size_t>(num_tasks), 0);
      parallel.for_each(num_tasks,
                        [&](std::int64_t task) { ++runs[static_cast<std::size_t>(task)]; });
      EXPECT_EQ(runs, std::vector<int>(static_cast<std::size_t>(num_tasks), 1));
    }
  }
}

TEST(Parallel, TakesAtLeastOneThreadByDefault) { EXPECT_GE(Parallel(0).num_threads(), 1); }

TEST(Parallel, CutsARangeIntoChunks) {
  Parallel parallel(3);
  std::atomic<std::int64_t> covered = 0;
  parallel.for_chunks(1003, 100, [&](std::int64_t begin, std::int64_t end) {
    EXPECT_EQ(begin % 100, 0);
    EXPECT_EQ(end, begin == 1000 ? 1003 : begin + 100);
    covered += end - begin;
  });
  EXPECT_EQ(covered, 1003);
}

TEST(Parallel, ServesSeveralCallersAtOnce) {
  Parallel parallel(3);
  const auto count = [&](int& total) {
    for (int round = 0; round < 100; ++round) {
      std::atomic<int> runs = 0;
      parallel.for_each(20, [&](std::int64_t) { ++runs; });
      total += runs;
    }
  };
  int first = 0, second = 0;
  std::thread other([&] { count(first); });
  count(second);
  other.join();
  EXPECT_EQ(first, 2000);
  EXPECT_EQ(second, 2000);
}

TEST(Parallel, MayBeCalledFromATask) {
  Parallel parallel(2);
  std::atomic<int> runs = 0;
  parallel.for_each(4, [&](std::int64_t) { parallel.for_each(5, [&](std::int64_t) { ++runs; }); });
  EXPECT_EQ(runs, 20);
}

TEST(Parallel, ThrowsWhatATaskThrewAndStaysUsable) {
  Parallel parallel(4);
  const auto fail = [](std::int64_t task) {
    if (task == 37) throw std::runtime_error("task 37");
  };
  EXPECT_THROW(parallel.for_each(100, fail), std::runtime_error);
  std::atomic<int> runs = 0;
  parallel.for_each(100, [&](std::int64_t) { ++runs; });
  EXPECT_EQ(runs, 100);
}

}  // namespace
}  // namespace strata::cpu
