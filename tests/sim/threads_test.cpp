// On which nodes the threads of a run are, to which cores they are bound and which of them touched
// a page first: none of it changes a bit.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/fake_gpu.hpp"
#include "sim/tiny_training.hpp"
#include "strata/topology/topology.hpp"
#include "support/sanitizers.hpp"

namespace strata {
namespace {

using testing::difference;
using testing::FakeGpu;
using testing::fresh_folder;
using testing::Outcome;
using testing::rounds;
using testing::tiny_config;
using testing::tiny_files;
using testing::train;
using testing::TrainingRun;

// This machine with its cores dealt to two nodes; the second may be left with one that it has not.
Topology as_two_nodes() {
  Topology topology = read_topology();
  std::vector<int> cores;
  for (const NumaNode& node : topology.nodes)
    cores.insert(cores.end(), node.cores.begin(), node.cores.end());
  const auto middle = cores.begin() + static_cast<std::ptrdiff_t>((cores.size() + 1) / 2);
  topology.nodes = {{0, {cores.begin(), middle}}, {1, {middle, cores.end()}}};
  if (topology.nodes[1].cores.empty()) topology.nodes[1].cores = {cores.back() + 1};
  topology.usable_cores = std::max(2, topology.usable_cores);
  return topology;
}

RunConfig config_on(const TierFractions& state) {
  RunConfig config = tiny_config(tiny_files());
  config.max_steps = rounds(10, 3);
  config.offload.nvme_paths = {fresh_folder("drive").string()};
  for (TierFractions* role :
       {&config.offload.master, &config.offload.moment1, &config.offload.moment2})
    *role = state;
  return config;
}

TEST(RunThreadsOnTwoNodes, NeverChangeABit) {
  for (const TierFractions& state : {TierFractions{0, 1, 0}, TierFractions{0.25, 0.25, 0.5}}) {
    RunConfig config = config_on(state);
    const Outcome expected = train(config);
    for (const int threads : {0, 3}) {
      config.compute_threads = config.update_threads = threads;
      TrainingRun run(config, {}, make_offload_engine, [](const RunConfig& c) {
        return plan_run(c, Purpose::train, as_two_nodes());
      });
      run.train();
      EXPECT_EQ(difference(expected, run.outcome()), "") << threads << " threads";
    }
  }
}

TEST(RunThreadsOnTwoNodes, LeaveTheMemoryOfAGpuAlone) {
  RunConfig config = config_on({0.25, 0.25, 0.5});
  config.max_steps = 3;
  const Outcome expected = train(config);
  config.update_threads = 2;
  FakeGpu gpu;
  TrainingRun run(config, gpu.watched(), make_offload_engine,
                  [&](const RunConfig& c) { return gpu.plan(c, as_two_nodes()); });
  run.train();
  EXPECT_EQ(difference(expected, run.outcome()), "");
}

TEST(RunThreadsOnTwoNodes, HaveTheirPlacesInTheRunsNotes) {
  RunConfig config = config_on({0, 1, 0});
  config.compute_threads = config.update_threads = 4;
  TrainingRun run(config, {}, make_offload_engine,
                  [](const RunConfig& c) { return plan_run(c, Purpose::train, as_two_nodes()); });
  const auto notes = run.session().notes();
  EXPECT_THAT(notes, ::testing::Contains(::testing::AllOf(
                         ::testing::StartsWith("threads  compute 4 ("),
                         ::testing::HasSubstr("node 0"), ::testing::HasSubstr("node 1"))));
}

}  // namespace
}  // namespace strata
