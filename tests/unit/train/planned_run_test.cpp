// What a run plans, from the shapes of a model alone.

#include "strata/train/planned_run.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "sim/tiny_training.hpp"
#include "strata/checkpoint/random_model.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"
#include "strata/train/session.hpp"

namespace strata {
namespace {

// A folder with a config.json and no weights.
std::filesystem::path model_without_weights(const std::string& preset) {
  const auto folder = testing::fresh_folder(preset);
  std::ofstream(folder / "config.json") << hf_config_text(random_model_preset(preset), DType::bf16);
  return folder;
}

RunConfig config_for(const std::string& preset) {
  RunConfig config;
  config.model_name_or_path = model_without_weights(preset);
  config.cutoff_len = 64;
  config.compute_threads = config.update_threads = 1;
  config.offload.gpu_limit = 64ull << 30;
  config.offload.cpu_limit = 4ull << 40;
  return config;
}

// Bytes of a role's homes for each parameter.
double bytes_per_parameter(const PlannedRun& run, Role role) {
  for (const Usage& usage : run.plan.usage) {
    if (!usage.is_home || usage.role != role) continue;
    const std::uint64_t bytes = usage.bytes[0] + usage.bytes[1] + usage.bytes[2];
    return static_cast<double>(bytes) / static_cast<double>(run.model->num_parameters());
  }
  return 0;
}

TEST(PlannedRun, CountsTheStateOf70BillionParametersInEachFormat) {
  RunConfig config = config_for("llama3-70b");
  config.optimizer_master = MasterFormat::split;
  config.optimizer_moments = DType::q8;
  const PlannedRun run = plan_run(config, Purpose::train);
  EXPECT_GT(run.model->num_parameters(), 70'000'000'000);
  constexpr double pages = 1e-4;  // homes end at whole pages
  EXPECT_NEAR(bytes_per_parameter(run, Role::weight), 2, pages);
  EXPECT_NEAR(bytes_per_parameter(run, Role::gradient), 2, pages);
  EXPECT_NEAR(bytes_per_parameter(run, Role::master), 2, pages);
  EXPECT_NEAR(bytes_per_parameter(run, Role::moment1) + bytes_per_parameter(run, Role::moment2),
              2 * (1 + 4.0 / 256), pages);
}

TEST(PlannedRun, PlansNoSecondMomentForAnOptimizerWithout) {
  RunConfig config = config_for("51m");
  config.optim = UpdateRule::lion;
  const PlannedRun run = plan_run(config, Purpose::train);
  EXPECT_NEAR(bytes_per_parameter(run, Role::master), 4, 1e-3);
  EXPECT_NEAR(bytes_per_parameter(run, Role::moment1), 4, 1e-3);
  EXPECT_EQ(bytes_per_parameter(run, Role::moment2), 0);
}

// A folder as Mistral v0.1 is: with a window shorter than the positions.
std::filesystem::path model_with_window(std::int64_t window) {
  const auto folder = testing::fresh_folder("window");
  auto config = nlohmann::json::parse(hf_config_text(random_model_preset("tiny"), DType::bf16));
  config["architectures"] = {"MistralForCausalLM"};
  config["model_type"] = "mistral";
  config["sliding_window"] = window;
  std::ofstream(folder / "config.json") << config;
  return folder;
}

TEST(PlannedRun, TakesRowsUpToTheLengthOfTheModelsWindow) {
  RunConfig config = config_for("tiny");
  config.model_name_or_path = model_with_window(64);
  config.cutoff_len = 64;
  EXPECT_NO_THROW(plan_run(config, Purpose::train));
  EXPECT_NO_THROW(plan_run(config, Purpose::evaluate));
  config.cutoff_len = 65;
  for (const Purpose purpose : {Purpose::train, Purpose::evaluate}) {
    try {
      plan_run(config, purpose);
      FAIL() << "planned rows longer than the window";
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("cutoff_len is 65"));
      EXPECT_THAT(error.what(), ::testing::HasSubstr("sliding_window 64"));
      EXPECT_THAT(error.what(), ::testing::HasSubstr("Set cutoff_len: 64 or less"));
    }
  }
}

std::uint64_t bytes_on(const PlannedRun& run, const std::string& name, Tier tier) {
  for (const Usage& usage : run.plan.usage)
    if (usage.name == name) return usage.bytes[static_cast<std::size_t>(tier)];
  return 0;
}

TEST(PlannedRun, KeepsLayersWhereTheConfigSays) {
  RunConfig config = config_for("tiny");  // three layers
  EXPECT_EQ(bytes_on(plan_run(config, Purpose::train), "saved", Tier::device), 0u);
  config.offload.keep_layers = 1;
  const std::uint64_t one = bytes_on(plan_run(config, Purpose::train), "saved", Tier::device);
  EXPECT_GT(one, 0u);
  config.offload.keep_layers = all_layers;
  EXPECT_EQ(bytes_on(plan_run(config, Purpose::train), "saved", Tier::device), 3 * one);
  config.offload.saved = {0, 1, 0};
  const PlannedRun offloaded = plan_run(config, Purpose::train);
  EXPECT_EQ(bytes_on(offloaded, "saved", Tier::device), 0u);
  EXPECT_EQ(bytes_on(offloaded, "saved", Tier::host), 3 * one);
  config.evaluate = true;
  EXPECT_EQ(bytes_on(plan_run(config, Purpose::evaluate), "saved", Tier::host), 0u);
}

TEST(PlannedRun, RefusesToKeepMoreLayersThanThereAre) {
  RunConfig config = config_for("tiny");
  config.offload.keep_layers = 3;
  EXPECT_NO_THROW(plan_run(config, Purpose::train));
  config.offload.keep_layers = 4;
  EXPECT_THROW(plan_run(config, Purpose::train), ConfigError);
}

TEST(PlannedRun, RefusesASplitMasterWithFp32Compute) {
  RunConfig config = config_for("tiny");
  config.optimizer_master = MasterFormat::split;
  config.bf16 = false;
  EXPECT_THROW(plan_run(config, Purpose::train), ConfigError);
}

TEST(PlannedRun, HoldsASliceOfWhatTheStageSlicesOnEachRank) {
  RunConfig config = config_for("51m");
  config.world = 4;
  config.zero_stage = 2;
  const PlannedRun run = plan_run(config, Purpose::train);
  EXPECT_NEAR(bytes_per_parameter(run, Role::weight), 2, 0.01) << "of bf16, all of it";
  EXPECT_NEAR(bytes_per_parameter(run, Role::gradient), 2.0 / 4, 0.01);
  EXPECT_NEAR(bytes_per_parameter(run, Role::master), 4.0 / 4, 0.02);
}

TEST(Session, RefusesARunOfSeveralRanks) {
  RunConfig config = config_for("tiny");
  config.world = 2;
  EXPECT_THROW(Session(config, plan_run(config, Purpose::train)), ConfigError);
}

// The least available memory of which so much can be used, of a machine where an eighth is kept.
std::uint64_t with_reserve(std::uint64_t bytes) { return bytes + (bytes - 1) / 7; }

TEST(HostReserve, GrowsWithTheMachineAndItsRanksButNotBeyondAnEighth) {
  EXPECT_EQ(host_reserve_bytes(1 * GiB, 1), 128 * MiB);
  EXPECT_EQ(host_reserve_bytes(6 * GiB, 1), 384 * MiB);
  EXPECT_EQ(host_reserve_bytes(6 * GiB, 2), 512 * MiB);
  EXPECT_EQ(host_reserve_bytes(1000 * GiB, 8), 50 * GiB);
}

TEST(HostReserve, IsWhatAPlanLeavesOfAMachineWithoutLimits) {
  Topology topology;
  topology.available_memory_bytes = 100 * GiB;
  RunConfig config = config_for("tiny");
  config.offload.cpu_limit.reset();
  EXPECT_EQ(rank_limits(config, Purpose::train, topology, 1).host_bytes, 95 * GiB);
  config.world = 2;
  EXPECT_EQ(rank_limits(config, Purpose::train, topology, 2).host_bytes, 95 * GiB / 2);
  config.offload.cpu_limit = 10 * GiB;
  EXPECT_EQ(rank_limits(config, Purpose::train, topology, 2).host_bytes, 5 * GiB);
}

TEST(HostMemory, HoldsTheTiersOfAllRanksAndTheirBuffers) {
  PlannedRun run;
  run.plan.tier_bytes = {1000, 2000, 5000};
  run.plan.limits.buffer_bytes = 500;
  EXPECT_NO_THROW(check_host_memory(run, 3, with_reserve(3 * 3500)));
  EXPECT_THROW(check_host_memory(run, 3, with_reserve(3 * 3500 - 1)), OutOfMemory);
}

TEST(HostMemory, NeedNotHoldTheTierOfAGpu) {
  PlannedRun run;
  run.plan.tier_bytes = {1000, 2000, 5000};
  run.device = make_host_device({});
  run.plan.limits.buffer_bytes = 500;
  EXPECT_NO_THROW(check_host_memory(run, 3, with_reserve(3 * 2500)));
  EXPECT_THROW(check_host_memory(run, 3, with_reserve(3 * 2500 - 1)), OutOfMemory);
}

TEST(DeviceMemory, MustBeFreeStillWhenTheRunIsPlanned) {
  PlannedRun run;
  run.plan.tier_bytes = {1000, 2000, 5000};
  EXPECT_NO_THROW(check_device_memory(run)) << "the host stands in";
  run.device = make_host_device({.memory_bytes = 1000});
  EXPECT_NO_THROW(check_device_memory(run));
  run.device = make_host_device({.memory_bytes = 999});
  EXPECT_THROW(check_device_memory(run), OutOfMemory);
}

TEST(OptimizerConfig, TakesSgdsMomentumAndTheBetasOfTheOthers) {
  RunConfig config;
  EXPECT_EQ(optimizer_config(config).beta1, 0.9);
  config.optim = UpdateRule::sgd;
  EXPECT_EQ(optimizer_config(config).beta1, 0);
  config.sgd_momentum = 0.95;
  EXPECT_EQ(optimizer_config(config).beta1, 0.95);
  config.optim = UpdateRule::lion;
  EXPECT_THROW(optimizer_config(config), ConfigError);
}

}  // namespace
}  // namespace strata
