#include "kernels/cpu/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <latch>
#include <mutex>
#include <numeric>
#include <set>
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

TEST(Parallel, RunsEveryTaskOnceWhateverTheNodes) {
  const std::vector<std::vector<int>> machines{{1, 1}, {3, 1}, {1, 2, 3}, std::vector<int>(19, 1)};
  for (const std::vector<int>& threads_of_node : machines) {
    Parallel parallel(threads_of_node);
    EXPECT_EQ(parallel.num_threads(),
              std::accumulate(threads_of_node.begin(), threads_of_node.end(), 0));
    for (int num_tasks : {0, 1, 2, 5, 1000}) {
      std::vector<int> runs(static_cast<std::size_t>(num_tasks), 0);
      parallel.for_each(num_tasks,
                        [&](std::int64_t task) { ++runs[static_cast<std::size_t>(task)]; });
      EXPECT_EQ(runs, std::vector<int>(static_cast<std::size_t>(num_tasks), 1));
    }
  }
}

TEST(Parallel, SaysToEachThreadItMakesOnWhichNodeItIsBeforeAnyTask) {
  std::mutex mutex;
  std::vector<std::size_t> nodes;
  std::set<std::thread::id> threads;
  const Parallel parallel({2, 1, 3}, [&](std::size_t node) {
    const std::lock_guard lock(mutex);
    nodes.push_back(node);
    threads.insert(std::this_thread::get_id());
  });
  std::ranges::sort(nodes);
  EXPECT_EQ(nodes, (std::vector<std::size_t>{0, 1, 2, 2, 2}));
  EXPECT_EQ(threads.size(), 5u);
  EXPECT_FALSE(threads.contains(std::this_thread::get_id())) << "the caller binds itself";
}

thread_local std::size_t node_of_this_thread = 0;
constexpr auto remember_node = [](std::size_t node) { node_of_this_thread = node; };

// Each thread can take but one task: none ends before all have begun.
TEST(Parallel, GivesEachNodeItsShareOfNeighbouringTasks) {
  Parallel parallel({2, 1, 3}, remember_node);
  for (int repeat = 0; repeat < 20; ++repeat) {
    std::vector<std::size_t> nodes(6);
    std::barrier<> all(6);
    parallel.for_each(6, [&](std::int64_t task) {
      nodes[static_cast<std::size_t>(task)] = node_of_this_thread;
      all.arrive_and_wait();
    });
    EXPECT_EQ(nodes, (std::vector<std::size_t>{0, 0, 1, 2, 2, 2}));
  }
}

// One thread is held in the first task it takes, of either node, until all others are done.
TEST(Parallel, HelpsANodeThatIsBehind) {
  Parallel parallel({1, 1});
  std::latch others(99);
  std::atomic<bool> holds = false;
  parallel.for_each(100, [&](std::int64_t) {
    if (!holds.exchange(true))
      others.wait();
    else
      others.count_down();
  });
  SUCCEED() << "without help the held thread would have waited for ever";
}

TEST(Parallel, ThrowsWhatATaskThrewOnAnyNode) {
  Parallel parallel({1, 2});
  for (const std::int64_t failing : {3, 96}) {
    const auto fail = [&](std::int64_t task) {
      if (task == failing) throw std::runtime_error("a task");
    };
    EXPECT_THROW(parallel.for_each(100, fail), std::runtime_error);
  }
}

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
