#include "strata/topology/binding.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <thread>

namespace strata {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<int> range(int first, int count) {
  std::vector<int> cores(static_cast<std::size_t>(count));
  std::iota(cores.begin(), cores.end(), first);
  return cores;
}

Topology machine(std::vector<std::vector<int>> cores_by_node) {
  Topology topology;
  topology.usable_cores = 0;
  for (std::vector<int>& cores : cores_by_node) {
    topology.usable_cores += static_cast<int>(cores.size());
    topology.nodes.push_back({static_cast<int>(topology.nodes.size()), std::move(cores), 0});
  }
  return topology;
}

// Every core at most once over all ranks.
std::size_t distinct_cores(const CoreBinding& binding) {
  std::set<int> cores;
  for (const RankCores& rank : binding.ranks) {
    cores.insert(rank.compute.begin(), rank.compute.end());
    cores.insert(rank.update.begin(), rank.update.end());
  }
  return cores.size();
}

TEST(CoreBinding, GivesOneRankAllCoresOfOneNodeInBothPools) {
  const CoreBinding binding = divide_cores(machine({range(0, 4)}), {});
  ASSERT_EQ(binding.ranks.size(), 1u);
  EXPECT_THAT(binding.ranks[0].nodes, ElementsAre(0));
  EXPECT_THAT(binding.ranks[0].compute, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(binding.ranks[0].update, binding.ranks[0].compute);
  EXPECT_EQ(binding.note, "");
}

TEST(CoreBinding, GivesOneRankTheCoresOfAllNodes) {
  const CoreBinding binding = divide_cores(machine({range(0, 2), range(2, 2)}), {});
  EXPECT_THAT(binding.ranks[0].nodes, ElementsAre(0, 1));
  EXPECT_THAT(binding.ranks[0].update, ElementsAre(0, 1, 2, 3));
}

TEST(CoreBinding, KeepsEachOfFourRanksOnOneOfTwoNodes) {
  const CoreBinding binding = divide_cores(machine({range(0, 8), range(8, 8)}), {.num_ranks = 4});
  EXPECT_THAT(binding.ranks[0].nodes, ElementsAre(0));
  EXPECT_THAT(binding.ranks[1].nodes, ElementsAre(0));
  EXPECT_THAT(binding.ranks[2].nodes, ElementsAre(1));
  EXPECT_THAT(binding.ranks[3].nodes, ElementsAre(1));
  EXPECT_THAT(binding.ranks[1].update, ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(binding.ranks[2].update, ElementsAre(8, 9, 10, 11));
  EXPECT_EQ(distinct_cores(binding), 16u);
  EXPECT_EQ(binding.note, "");
}

TEST(CoreBinding, PutsRanksOnTheNodesOfTheirGpus) {
  const CoreBinding binding =
      divide_cores(machine({range(0, 4), range(4, 4)}), {.num_ranks = 2, .near_nodes = {1, 0}});
  EXPECT_THAT(binding.ranks[0].nodes, ElementsAre(1));
  EXPECT_THAT(binding.ranks[0].update, ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(binding.ranks[1].update, ElementsAre(0, 1, 2, 3));
}

TEST(CoreBinding, LeavesNoNodeIdleWhenAllGpusAreOnOne) {
  const CoreBinding binding =
      divide_cores(machine({range(0, 4), range(4, 4)}), {.num_ranks = 1, .near_nodes = {1}});
  EXPECT_THAT(binding.ranks[0].nodes, ElementsAre(0, 1));
  EXPECT_EQ(binding.ranks[0].update.size(), 8u);
}

TEST(CoreBinding, GivesAnEmptyNodeToTheRankWithTheFewestCores) {
  const CoreBinding binding = divide_cores(machine({range(0, 2), range(2, 6), range(8, 4)}),
                                           {.num_ranks = 2, .near_nodes = {1, 0}});
  EXPECT_THAT(binding.ranks[0].nodes, ElementsAre(1));
  EXPECT_THAT(binding.ranks[1].nodes, ElementsAre(0, 2));
}

TEST(CoreBinding, TreatsUnknownNodesAsNone) {
  const Topology topology = machine({range(0, 4), range(4, 4)});
  const CoreBinding binding = divide_cores(topology, {.num_ranks = 2, .near_nodes = {-1, 7}});
  EXPECT_THAT(binding.ranks[0].nodes, ElementsAre(0));
  EXPECT_THAT(binding.ranks[1].nodes, ElementsAre(1));
}

TEST(CoreBinding, UsesOnlyTheCoresOfACpuset) {
  const CoreBinding binding = divide_cores(machine({{1, 3, 5}, {}, {9, 11, 13}}), {.num_ranks = 2});
  EXPECT_THAT(binding.ranks[0].update, ElementsAre(1, 3, 5));
  EXPECT_THAT(binding.ranks[1].update, ElementsAre(9, 11, 13));
  EXPECT_THAT(binding.ranks[1].nodes, ElementsAre(2));
}

TEST(CoreBinding, SharesAnUnevenNumberFairly) {
  const CoreBinding binding = divide_cores(machine({range(0, 7)}), {.num_ranks = 3});
  EXPECT_THAT(binding.ranks[0].update, ElementsAre(0, 1));
  EXPECT_THAT(binding.ranks[1].update, ElementsAre(2, 3));
  EXPECT_THAT(binding.ranks[2].update, ElementsAre(4, 5, 6));
}

TEST(CoreBinding, SpreadsAQuotaBelowTheAffinityOverTheCores) {
  Topology topology = machine({range(0, 8), range(8, 8)});
  topology.usable_cores = 4;
  const CoreBinding one = divide_cores(topology, {});
  EXPECT_THAT(one.ranks[0].update, ElementsAre(0, 4, 8, 12));
  const CoreBinding two = divide_cores(topology, {.num_ranks = 2});
  EXPECT_THAT(two.ranks[0].update, ElementsAre(0, 4));
  EXPECT_THAT(two.ranks[1].update, ElementsAre(8, 12));
  EXPECT_EQ(two.note, "");
}

TEST(CoreBinding, NamesOnlyNodesThatTheQuotaLeaves) {
  Topology topology = machine({range(0, 4), range(4, 4)});
  topology.usable_cores = 1;
  EXPECT_THAT(divide_cores(topology, {}).ranks[0].nodes, ElementsAre(0));
}

TEST(CoreBinding, LetsRanksShareWhenThereAreFewerCores) {
  const CoreBinding binding = divide_cores(machine({{2, 5}}), {.num_ranks = 4});
  EXPECT_THAT(binding.ranks[0].update, ElementsAre(2));
  EXPECT_THAT(binding.ranks[1].update, ElementsAre(2));
  EXPECT_THAT(binding.ranks[2].update, ElementsAre(5));
  EXPECT_THAT(binding.ranks[3].compute, ElementsAre(5));
  EXPECT_THAT(binding.note, HasSubstr("4 ranks share 2 cores"));
}

TEST(CoreBinding, SaysWhenAQuotaIsSharedByMoreRanks) {
  Topology topology = machine({range(0, 8)});
  topology.usable_cores = 2;
  const CoreBinding binding = divide_cores(topology, {.num_ranks = 4});
  for (const RankCores& rank : binding.ranks) EXPECT_EQ(rank.update.size(), 1u);
  EXPECT_THAT(binding.note, HasSubstr("4 ranks share 2 cores"));
}

TEST(CoreBinding, PartsThePoolsWhenComputeNeedsFewCores) {
  const CoreBinding binding =
      divide_cores(machine({range(0, 8)}), {.num_ranks = 2, .compute_cores = 1});
  EXPECT_THAT(binding.ranks[0].compute, ElementsAre(0));
  EXPECT_THAT(binding.ranks[0].update, ElementsAre(1, 2, 3));
  EXPECT_THAT(binding.ranks[1].compute, ElementsAre(4));
  EXPECT_THAT(binding.ranks[1].update, ElementsAre(5, 6, 7));
}

TEST(CoreBinding, LetsThePoolsShareACoreWhenThereIsNoSecond) {
  const CoreBinding binding = divide_cores(machine({{3}}), {.compute_cores = 1});
  EXPECT_THAT(binding.ranks[0].compute, ElementsAre(3));
  EXPECT_THAT(binding.ranks[0].update, ElementsAre(3));
}

// Whatever the machine: nobody goes without, no rank takes another's core while there are enough.
TEST(CoreBinding, KeepsItsPromisesOverManyMachines) {
  for (int nodes = 1; nodes <= 4; ++nodes) {
    for (int cores = 1; cores <= 9; ++cores) {
      for (int ranks = 1; ranks <= 9; ++ranks) {
        for (int quota = 1; quota <= nodes * cores; ++quota) {
          std::vector<std::vector<int>> by_node;
          for (int node = 0; node < nodes; ++node) by_node.push_back(range(node * cores, cores));
          Topology topology = machine(by_node);
          topology.usable_cores = quota;
          const CoreBinding binding = divide_cores(topology, {.num_ranks = ranks});
          std::size_t given = 0;
          for (const RankCores& rank : binding.ranks) {
            ASSERT_FALSE(rank.update.empty() || rank.nodes.empty());
            given += rank.update.size();
          }
          ASSERT_LE(given, static_cast<std::size_t>(std::max(quota, ranks)));
          if (binding.note.empty()) {
            ASSERT_EQ(distinct_cores(binding), given);
          }
        }
      }
    }
  }
}

TEST(CoreList, IsShownAsRuns) {
  EXPECT_EQ(format_cores(std::vector{0, 1, 2, 3, 8}), "0-3,8");
  EXPECT_EQ(format_cores(std::vector{9, 2, 1}), "1-2,9");
  EXPECT_EQ(format_cores(std::vector<int>{}), "");
}

TEST(ThreadBinding, PutsTheThreadOnTheCoresAskedFor) {
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(before), &before), 0);
  int last = CPU_SETSIZE - 1;
  while (!CPU_ISSET(last, &before)) --last;
  std::string refusal;
  cpu_set_t after;
  std::thread([&] {
    refusal = bind_current_thread(std::vector{last});
    ::sched_getaffinity(0, sizeof(after), &after);
  }).join();
  EXPECT_EQ(refusal, "");
  EXPECT_EQ(CPU_COUNT(&after), 1);
  EXPECT_TRUE(CPU_ISSET(last, &after));
  cpu_set_t unchanged;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(unchanged), &unchanged), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &unchanged)) << "other threads stay where they are";
}

TEST(ThreadBinding, SaysWhyItWasRefused) {
  EXPECT_THAT(bind_current_thread(std::vector{9999}), HasSubstr("9999"));
  EXPECT_THAT(bind_current_thread(std::vector{-1}), HasSubstr("-1"));
  EXPECT_THAT(bind_current_thread({}), HasSubstr("no core"));
}

}  // namespace
}  // namespace strata
