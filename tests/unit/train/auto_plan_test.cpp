#include "strata/train/auto_plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "sim/tiny_training.hpp"
#include "strata/checkpoint/random_model.hpp"
#include "strata/core/error.hpp"
#include "strata/train/forecast.hpp"

namespace strata {
namespace {

using ::testing::HasSubstr;

RunConfig open_config() {
  static const auto folder = [] {
    const auto made = testing::fresh_folder("auto_plan");
    std::ofstream(made / "config.json") << hf_config_text(random_model_preset("51m"), DType::bf16);
    return made;
  }();
  RunConfig config;
  config.model_name_or_path = folder;
  config.cutoff_len = 256;
  config.gradient_accumulation_steps = 2;
  config.offload.tile_bytes = 4 << 20;
  config.offload.automatic = true;
  return config;
}

// 51 million parameters with 16 bytes of state each fit neither memory alone.
MachineProfile small_machine() {
  MachineProfile machine;
  machine.name = "small";
  machine.accelerator = {"card", 500'000'000, 165e12, 800e9, {{1e9, 100e12}}, {{1e9, 40e12}}};
  machine.link = {25e9, 25e9, 0};
  machine.host = {900'000'000, 16, 60e9, {}};
  machine.drives = {{.bytes = 1'000'000'000'000,
                     .read_bytes_per_s = 5e9,
                     .write_bytes_per_s = 4e9,
                     .mixed_bytes_per_s = 6e9,
                     .endurance_bytes = 600e12}};
  return machine;
}

TEST(AutoPlan, FillsInWhatIsFasterThanTheConfigsOwn) {
  const RunConfig config = open_config();
  const RunConfig chosen = auto_plan(config, small_machine());
  EXPECT_FALSE(chosen.offload.automatic);
  const auto seconds = [](const RunConfig& c) {
    const auto tried = try_out(scenario_of(c, small_machine()), small_machine());
    return tried.fits() ? tried.step_seconds : 1e9;
  };
  EXPECT_LT(seconds(chosen), seconds(config));
}

TEST(AutoPlan, KeepsWhatTheConfigSets) {
  RunConfig config = open_config();
  config.offload.weights = {0.25, 0.75, 0};
  config.offload.staging_slots = 7;
  config.offload.streamed_updates = 0.5;
  for (const char* key : {"offload.weights", "offload.staging_slots", "offload.streamed_updates"})
    config.resolved.push_back({key, "", "file"});
  config.resolved.push_back({"offload.gradients", "", "default"});
  const RunConfig chosen = auto_plan(config, small_machine());
  EXPECT_EQ(chosen.offload.weights.device, 0.25);
  EXPECT_EQ(chosen.offload.staging_slots, 7);
  EXPECT_EQ(chosen.offload.streamed_updates, 0.5);
  EXPECT_NE(chosen.offload.gradients.host, 1);
}

TEST(AutoPlan, SaysWhatToPaste) {
  const std::string block = auto_plan_block(auto_plan(open_config(), small_machine()));
  EXPECT_THAT(block, HasSubstr("offload:\n  weights: {gpu: "));
  EXPECT_THAT(block, HasSubstr("\n  update_order: deferred\n"));
}

TEST(AutoPlan, IsRefusedWithoutAMachine) {
  try {
    plan_run(open_config(), Purpose::train);
    FAIL() << "planned without a search";
  } catch (const ConfigError& refusal) {
    EXPECT_THAT(refusal.what(), HasSubstr("--machine FILE"));
    EXPECT_THAT(refusal.what(), HasSubstr("bench all --write-profile"));
  }
}

TEST(AutoPlan, TellsWhatIsMissingWhenNothingFits) {
  MachineProfile machine = small_machine();
  machine.drives.clear();
  machine.host.memory_bytes = 100'000'000;
  machine.accelerator.memory_bytes = 200'000'000;
  try {
    auto_plan(open_config(), machine);
    FAIL() << "fits";
  } catch (const OutOfMemory& refusal) {
    EXPECT_THAT(refusal.what(), HasSubstr("missing"));
    EXPECT_THAT(refusal.what(), HasSubstr("offload.nvme_paths"));
  }
}

}  // namespace
}  // namespace strata
