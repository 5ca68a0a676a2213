// 70 billion parameters on eight accelerators of 80 GB: what is found is no slower than the
// placements that people choose by hand.

#include <gtest/gtest.h>

#include <memory>

#include "strata/kernels/kernels.hpp"
#include "strata/model/model.hpp"
#include "strata/optim/optimizer.hpp"
#include "strata/plan/search.hpp"
#include "support/llama_70b.hpp"

namespace strata {
namespace {

constexpr int large_world = 8;

const Model& llama_70b() {
  static const std::unique_ptr<Kernels> kernels = make_ref_kernels();
  static const std::unique_ptr<Model> model =
      make_llama(testing::llama_70b(), {.tokens_per_micro_batch = 4096}, *kernels);
  return *model;
}

// 16 MiB tiles of bf16: four times fewer ops than the default's, for a quick test.
Program declare_large(const ProgramVariant& variant) {
  Program program;
  program.world = large_world;
  program.tile_elements = 16 << 20;
  llama_70b().declare_state(program, 1);
  Sequence train{"train", {}};
  llama_70b().declare_training(program, train, 1, variant);
  Optimizer::declare({}, program, train);
  program.sequences.push_back(std::move(train));
  return program;
}

// 8x H100-80: links as measured on such a node, 62% of the printed FLOPs, eight Gen5 drives.
MachineProfile eight_h100(std::uint64_t host_bytes) {
  MachineProfile machine;
  machine.name = "8xH100";
  machine.ranks = large_world;
  machine.accelerator.memory_bytes = 80'000'000'000;
  machine.accelerator.peak_flops_per_s = 989e12;
  machine.accelerator.memory_bytes_per_s = 3e12;
  machine.accelerator.bf16 = {{1e9, 613e12}};
  machine.accelerator.f32 = {{1e9, 50e12}};
  machine.link = {54.8e9, 46.8e9, 0};
  machine.host.memory_bytes = host_bytes;
  machine.host.memory_bytes_per_s = 487e9;
  for (int i = 0; i < 8; ++i) machine.drives.push_back({3'840'000'000'000, 7e9, 5e9, 0, 0});
  machine.comm = {340e9, 340e9, 1e-5};
  return machine;
}

Policy by_hand(double weights_and_gradients, double state, double streamed = 0) {
  Policy policy;
  for (const Role role : {Role::weight, Role::gradient})
    policy.fractions[static_cast<std::size_t>(role)] = {weights_and_gradients,
                                                        1 - weights_and_gradients, 0};
  for (const Role role : {Role::master, Role::moment1, Role::moment2})
    policy.fractions[static_cast<std::size_t>(role)] = {state, 1 - state, 0};
  policy.streamed_updates = streamed;
  policy.state_slots = policy.staging_slots = 8;
  return policy;
}

double seconds_by_hand(const Policy& policy, const MachineProfile& machine) {
  const Program program = declare_large({});
  const Plan plan = make_plan(program, {}, policy);
  return simulate(program, plan, "train", machine).step_seconds;
}

TEST(SearchFor70B, IsNoSlowerThanPlacementsByHandAndLeavesTheDrivesAlone) {
  const MachineProfile machine = eight_h100(1'000'000'000'000);
  SearchSpace space;
  space.num_layers = 80;
  const SearchResult found = search(declare_large, machine_limits(machine), machine, {}, space);
  for (const TierFractions& fractions : found.policy.fractions) EXPECT_EQ(fractions.nvme, 0);
  EXPECT_GT(found.policy.fractions[static_cast<std::size_t>(Role::master)].device, 0.15);
  // Whether or not they fit: everything in host memory, weights and gradients with a quarter of the
  // state on the device, the same with updates there.
  for (const Policy& policy : {by_hand(0, 0), by_hand(1, 0.24), by_hand(1, 0.24, 1)})
    EXPECT_LE(found.simulation.step_seconds, seconds_by_hand(policy, machine));
}

}  // namespace
}  // namespace strata
