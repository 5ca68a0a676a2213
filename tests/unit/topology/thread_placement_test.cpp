#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "strata/topology/binding.hpp"

namespace strata {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

Topology two_nodes() {
  Topology topology;
  topology.nodes = {{0, {0, 1, 2, 3}}, {1, {4, 5, 6, 7}}};
  topology.usable_cores = 8;
  return topology;
}

void expect_threads(const NodeThreads& threads, int node, int count, std::vector<int> cores) {
  EXPECT_EQ(threads.node, node);
  EXPECT_EQ(threads.count, count);
  EXPECT_EQ(threads.cores, cores);
}

TEST(ThreadPlacement, PutsOneThreadOnEachCoreAndHoldsItToItsNode) {
  const auto threads = place_threads(two_nodes(), std::vector{0, 1, 4, 5, 6});
  ASSERT_THAT(threads, SizeIs(2));
  expect_threads(threads[0], 0, 2, {0, 1});
  expect_threads(threads[1], 1, 3, {4, 5, 6});
}

TEST(ThreadPlacement, SpreadsAGivenNumberAsTheCoresAre) {
  const std::vector<int> cores{0, 1, 2, 3, 4, 5};
  const auto threads = place_threads(two_nodes(), cores, 3);
  ASSERT_THAT(threads, SizeIs(2));
  expect_threads(threads[0], 0, 2, {0, 1, 2, 3});
  expect_threads(threads[1], 1, 1, {4, 5});
}

TEST(ThreadPlacement, PutsMoreThreadsThanCoresOnTheSameCores) {
  const auto threads = place_threads(two_nodes(), std::vector{0, 4}, 10);
  ASSERT_THAT(threads, SizeIs(2));
  expect_threads(threads[0], 0, 5, {0});
  expect_threads(threads[1], 1, 5, {4});
}

TEST(ThreadPlacement, LeavesOutANodeWithoutAThread) {
  const auto threads = place_threads(two_nodes(), std::vector{2, 3, 4, 5}, 1);
  ASSERT_THAT(threads, SizeIs(1));
  expect_threads(threads[0], 0, 1, {2, 3});
}

// Two containers with quotas over the same cores would else crowd on the same few.
TEST(ThreadPlacement, HoldsThreadsToTheNodeAloneUnderAQuota) {
  Topology topology = two_nodes();
  topology.usable_cores = 2;
  const auto threads = place_threads(topology, divide_cores(topology, {}).ranks[0].update);
  ASSERT_THAT(threads, SizeIs(2));
  expect_threads(threads[0], 0, 1, {0, 1, 2, 3});
  expect_threads(threads[1], 1, 1, {4, 5, 6, 7});
}

TEST(ThreadPlacement, GivesEveryThreadAPlaceOverManyMachines) {
  for (int on_first = 1; on_first <= 4; ++on_first) {
    for (int on_second = 0; on_second <= 4; ++on_second) {
      for (int wanted = 0; wanted <= 20; ++wanted) {
        Topology topology = two_nodes();
        topology.nodes[0].cores.resize(static_cast<std::size_t>(on_first));
        topology.nodes[1].cores.resize(static_cast<std::size_t>(on_second));
        topology.usable_cores = on_first + on_second;
        int count = 0;
        for (const NodeThreads& threads :
             place_threads(topology, divide_cores(topology, {}).ranks[0].compute, wanted)) {
          ASSERT_GT(threads.count, 0);
          ASSERT_FALSE(threads.cores.empty());
          count += threads.count;
        }
        ASSERT_EQ(count, wanted > 0 ? wanted : topology.usable_cores);
      }
    }
  }
}

}  // namespace
}  // namespace strata
