#include "strata/train/run_threads.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <mutex>

namespace strata {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

using Cores = std::vector<int>;

Topology machine(std::vector<NumaNode> nodes) {
  Topology topology;
  topology.usable_cores = 0;
  for (const NumaNode& node : nodes) topology.usable_cores += static_cast<int>(node.cores.size());
  topology.nodes = std::move(nodes);
  return topology;
}
Topology one_node(int cores) {
  NumaNode node;
  for (int core = 0; core < cores; ++core) node.cores.push_back(core);
  return machine({node});
}
Topology two_nodes() { return machine({{0, {0, 1}}, {1, {2, 3}}}); }

// Who asked to be bound to what.
struct Bindings {
  std::mutex mutex;
  std::vector<Cores> asked;
  std::string refusal;

  RunThreads::Bind recorder() {
    return [this](std::span<const int> cores) {
      const std::lock_guard lock(mutex);
      asked.emplace_back(cores.begin(), cores.end());
      return refusal;
    };
  }
};

std::unique_ptr<RunThreads> place(const Topology& topology, const ThreadsWanted& wanted = {},
                                  Bindings* bindings = nullptr) {
  static Bindings ignored;
  return std::make_unique<RunThreads>(topology, divide_cores(topology, {}).ranks[0], wanted,
                                      (bindings != nullptr ? *bindings : ignored).recorder());
}

std::string text(const RunThreads& threads) {
  std::string text;
  for (const std::string& line : threads.lines()) text += line + "\n";
  return text;
}

TEST(RunThreads, TellsThreadsCoresAndNodeOfBothPools) {
  EXPECT_THAT(place(one_node(2))->lines(),
              ElementsAre("threads  compute 2 (cores 0-1, node 0), update 2 (cores 0-1, node 0)"));
}

TEST(RunThreads, TellsTheThreadsOfEachNode) {
  EXPECT_THAT(place(two_nodes())->lines().front(),
              HasSubstr("update 4 (2 on cores 0-1, node 0; 2 on cores 2-3, node 1)"));
}

TEST(RunThreads, ObeysTheConfig) {
  const auto threads = place(two_nodes(), {.compute = 3, .update = 2});
  EXPECT_THAT(threads->compute_kernels().threads_of_node, ElementsAre(2, 1));
  EXPECT_THAT(threads->update_kernels().threads_of_node, ElementsAre(1, 1));
  EXPECT_THAT(threads->lines(), SizeIs(1)) << text(*threads);
}

TEST(RunThreads, BindsEachThreadToTheCoresOfItsNode) {
  Bindings bindings;
  const auto threads = place(two_nodes(), {}, &bindings);
  const auto kernels = make_cpu_kernels(threads->update_kernels());
  EXPECT_THAT(bindings.asked, UnorderedElementsAre(Cores{0, 1}, Cores{2, 3}, Cores{2, 3}));
}

TEST(RunThreads, BindsTheLanesThatRunKernelsToTheFirstNode) {
  Bindings bindings;
  const auto threads = place(two_nodes(), {}, &bindings);
  for (int lane = 0; lane < num_lanes; ++lane) threads->bind_lane(static_cast<Lane>(lane));
  EXPECT_THAT(bindings.asked, ElementsAre(Cores{0, 1}, Cores{0, 1}));
}

TEST(RunThreads, WarnsOnceOfABindingThatWasRefusedAndGoesOn) {
  Bindings bindings{.mutex = {}, .asked = {}, .refusal = "the thread cannot be bound: not allowed"};
  const auto threads = place(one_node(4), {}, &bindings);
  const auto kernels = make_cpu_kernels(threads->compute_kernels());
  EXPECT_THAT(bindings.asked, SizeIs(3));
  ASSERT_THAT(threads->lines(), SizeIs(2)) << text(*threads);
  EXPECT_THAT(threads->lines()[1], HasSubstr("cannot be bound: not allowed"));
}

TEST(RunThreads, WarnsWhenThereIsNoSecondCore) {
  Topology topology = one_node(8);
  topology.usable_cores = 1;
  topology.note = "cgroup limits 8 cores to 0.5";
  const auto threads = place(topology);
  ASSERT_THAT(threads->lines(), SizeIs(3)) << text(*threads);
  EXPECT_THAT(threads->lines()[1], HasSubstr("compute has one thread"));
  EXPECT_THAT(threads->lines()[2], HasSubstr("update has one thread"));
  EXPECT_THAT(threads->lines()[2], HasSubstr("cgroup limits 8 cores to 0.5"));
}

TEST(RunThreads, WarnsWhenTheConfigUsesFewerThanHalfOfTheCores) {
  const auto threads = place(one_node(8), {.compute = 4, .update = 3});
  ASSERT_THAT(threads->lines(), SizeIs(2)) << text(*threads);
  EXPECT_THAT(threads->lines()[1], HasSubstr("update has 3 threads for 8 cores"));
  EXPECT_THAT(threads->lines()[1], HasSubstr("update_threads: 0"));
}

TEST(RunThreads, WarnsWhenTheConfigLeavesOneThread) {
  const auto threads = place(one_node(2), {.compute = 1, .update = 2});
  ASSERT_THAT(threads->lines(), SizeIs(2)) << text(*threads);
  EXPECT_THAT(threads->lines()[1], HasSubstr("compute has 1 thread for 2 cores"));
}

TEST(RunThreads, WarnsWhenThreadsTakeTurns) {
  const auto threads = place(one_node(2), {.compute = 2, .update = 9});
  ASSERT_THAT(threads->lines(), SizeIs(2)) << text(*threads);
  EXPECT_THAT(threads->lines()[1], HasSubstr("update has 9 threads on 2 cores"));
}

TEST(RunThreads, HaveNoComputePoolWhereAGpuComputes) {
  Bindings bindings;
  RankCores cores = divide_cores(one_node(4), {}).ranks[0];
  cores.compute.clear();
  RunThreads threads(one_node(4), cores, {.compute = 1}, bindings.recorder());
  EXPECT_THAT(threads.lines(), ElementsAre("threads  update 4 (cores 0-3, node 0)"));
  for (int lane = 0; lane < num_lanes; ++lane) threads.bind_lane(static_cast<Lane>(lane));
  EXPECT_THAT(bindings.asked, ElementsAre(Cores{0, 1, 2, 3}));
}

TEST(RunThreads, KnowsWhetherMemoryCanBeFar) {
  EXPECT_FALSE(place(one_node(2))->has_far_memory());
  EXPECT_TRUE(place(two_nodes())->has_far_memory());
}

}  // namespace
}  // namespace strata
