// What plans of a Llama of 3.6 billion parameters on one shipped GPU cost by where things live:
// figures that a sane cost model must give, whatever is tuned in it.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "strata/cli/machine_file.hpp"
#include "strata/train/forecast.hpp"
#include "support/own_path.hpp"
#include "support/source_dir.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;

constexpr double parameters = 3.6068e9, tokens = 4096, state_bytes_per_parameter = 12;

fs::path shape_of_3b() {
  static const OwnFolder folder("gpu-plans");
  std::ofstream(folder / "config.json") << R"({"architectures": ["LlamaForCausalLM"],
    "model_type": "llama", "hidden_act": "silu", "hidden_size": 3072, "intermediate_size": 8192,
    "num_hidden_layers": 28, "num_attention_heads": 24, "num_key_value_heads": 8, "head_dim": 128,
    "vocab_size": 128256, "max_position_embeddings": 131072, "rms_norm_eps": 1e-5,
    "rope_theta": 500000.0, "tie_word_embeddings": false, "torch_dtype": "bfloat16"})";
  return folder.path();
}

MachineProfile h200() { return read_machine_file(source_dir() / "configs/machines/1xH200.yaml"); }

// The optimizer's state on one tier, everything else on another.
RunConfig config_with(Tier rest, Tier state) {
  const auto all_on = [](Tier tier) {
    return TierFractions{tier == Tier::device ? 1.0 : 0.0, tier == Tier::host ? 1.0 : 0.0,
                         tier == Tier::nvme ? 1.0 : 0.0};
  };
  RunConfig config;
  config.model_name_or_path = shape_of_3b();
  config.cutoff_len = static_cast<std::int64_t>(tokens);
  OffloadConfig& offload = config.offload;
  offload.tile_bytes = 64 << 20;
  offload.weights = offload.gradients = offload.activations = all_on(rest);
  offload.master = offload.moment1 = offload.moment2 = all_on(state);
  return config;
}

Simulation simulated(const RunConfig& config, const MachineProfile& machine) {
  return forecast(scenario_of(config, machine), machine, Proof::trusted).prediction.simulation;
}

double busy(const Simulation& step, Resource resource) {
  return step.busy[static_cast<std::size_t>(resource)];
}

TEST(GpuPlans, CostMoreTheFartherAwayTheStateLives) {
  const MachineProfile machine = h200();
  const double resident = simulated(config_with(Tier::device, Tier::device), machine).step_seconds;
  const double in_ram = simulated(config_with(Tier::device, Tier::host), machine).step_seconds;
  const double all_in_ram = simulated(config_with(Tier::host, Tier::host), machine).step_seconds;
  const double on_nvme = simulated(config_with(Tier::host, Tier::nvme), machine).step_seconds;
  EXPECT_LT(resident, in_ram);
  EXPECT_LE(in_ram, all_in_ram * (1 + 1e-9));
  EXPECT_LT(all_in_ram, on_nvme);
}

TEST(GpuPlans, WithAllOnTheGpuAreBoundByItsComputeAndUpdateAtItsMemorysRate) {
  const MachineProfile machine = h200();
  const Simulation step = simulated(config_with(Tier::device, Tier::device), machine);
  EXPECT_EQ(step.bound_by, Resource::compute);
  // Products of forward, its recomputation and backward, and the pass over the state.
  const double products = 8 * parameters * tokens / machine.accelerator.bf16.back().flops_per_s;
  const double update =
      parameters * (2 + 2 * state_bytes_per_parameter + 2) / machine.accelerator.memory_bytes_per_s;
  EXPECT_GT(step.step_seconds, 0.8 * (products + update));
  EXPECT_LT(step.step_seconds, 1.6 * (products + update));
  EXPECT_LT(busy(step, Resource::update), 0.01 * step.step_seconds);
}

TEST(GpuPlans, WithStateOnNvmeAreBoundByTheDrive) {
  const MachineProfile machine = h200();
  const Simulation step = simulated(config_with(Tier::device, Tier::nvme), machine);
  const double state = parameters * state_bytes_per_parameter;
  EXPECT_EQ(step.bound_by, Resource::nvme_write);
  EXPECT_NEAR(busy(step, Resource::nvme_write), state / machine.drives[0].write_bytes_per_s,
              0.02 * busy(step, Resource::nvme_write));
  EXPECT_GE(step.step_seconds, busy(step, Resource::nvme_write) * (1 - 1e-9));
  EXPECT_LT(step.step_seconds, 1.2 * busy(step, Resource::nvme_write));
}

TEST(GpuPlans, PayForEachLaunch) {
  MachineProfile machine = h200();
  const RunConfig config = config_with(Tier::device, Tier::device);
  const double as_told = simulated(config, machine).step_seconds;
  machine.accelerator.seconds_per_call += 100e-6;
  // A layer makes some 15 calls forward, as many again and twice that backward.
  const double more = (simulated(config, machine).step_seconds - as_told) / 100e-6;
  EXPECT_GT(more, 28 * 30);
  EXPECT_LT(more, 28 * 150);
}

TEST(GpuPlans, ThatASearchFindsAreNoSlowerThanThoseThatPeopleTry) {
  const MachineProfile machine = h200();
  const RunConfig config = config_with(Tier::device, Tier::device);
  const Scenario found = fastest_scenario(scenario_of(config, machine), machine);
  EXPECT_LE(forecast(found, machine, Proof::trusted).prediction.simulation.step_seconds,
            simulated(config, machine).step_seconds * (1 + 1e-9));
}

}  // namespace
}  // namespace strata
