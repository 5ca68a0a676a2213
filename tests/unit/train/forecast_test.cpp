// Forecasts of a run on a machine that is not here, and of its neighbours.

#include "strata/train/forecast.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "sim/tiny_training.hpp"
#include "strata/checkpoint/random_model.hpp"
#include "strata/checkpoint/state_checkpoint.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A folder with a config.json and no weights.
std::filesystem::path shape_of(const std::string& preset) {
  const auto folder = testing::fresh_folder(preset);
  std::ofstream(folder / "config.json") << hf_config_text(random_model_preset(preset), DType::bf16);
  return folder;
}

RunConfig config_of(const std::string& preset) {
  RunConfig config;
  config.model_name_or_path = shape_of(preset);
  config.cutoff_len = 256;
  config.gradient_accumulation_steps = 2;
  config.offload.tile_bytes = 1 << 20;
  for (TierFractions* fractions :
       {&config.offload.master, &config.offload.moment1, &config.offload.moment2})
    *fractions = {0, 0.5, 0.5};
  return config;
}

MachineProfile workstation() {
  MachineProfile machine;
  machine.name = "workstation";
  machine.accelerator = {"card", 24'000'000'000, 165e12, 800e9, {{1e9, 100e12}}, {{1e9, 40e12}}};
  machine.link = {25e9, 25e9, 0};
  machine.host = {64'000'000'000, 16, 60e9, {}};
  machine.drives = {{.bytes = 1'000'000'000'000,
                     .read_bytes_per_s = 5e9,
                     .write_bytes_per_s = 4e9,
                     .mixed_bytes_per_s = 6e9,
                     .endurance_bytes = 600e12}};
  return machine;
}

const RunConfig& tiny() {
  static const RunConfig config = config_of("51m");
  return config;
}

TEST(Forecast, PlansAndTimesARunWithNothingButTheModelsShape) {
  const Forecast made = forecast(scenario_of(tiny(), workstation()), workstation());
  EXPECT_GT(made.prediction.simulation.step_seconds, 0);
  EXPECT_EQ(made.prediction.tokens_per_step, 512);
  EXPECT_GT(made.prediction.mfu, 0);
  EXPECT_LT(made.prediction.mfu, 1);
  EXPECT_GT(made.run.plan.tier_bytes[2], 0u) << "the machine's drives stand for the config's paths";
}

TEST(Forecast, KeepsToTheMachinesMemoryAndTheConfigsLimits) {
  MachineProfile machine = workstation();
  machine.accelerator.memory_bytes = 1'000'000;
  EXPECT_THROW(forecast(scenario_of(tiny(), machine), machine), OutOfMemory);
  RunConfig config = tiny();
  config.offload.cpu_limit = 1'000'000;
  EXPECT_THROW(forecast(scenario_of(config, workstation()), workstation()), OutOfMemory);
}

TEST(Forecast, NamesTheMachineThatHasNoDrives) {
  MachineProfile machine = workstation();
  machine.drives.clear();
  try {
    scenario_of(tiny(), machine);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("workstation has no drives"));
  }
}

TEST(ChangedKeys, NameWhatDiffersAndNothingElse) {
  const Scenario from = scenario_of(tiny(), workstation());
  EXPECT_EQ(changed_keys(from, from), "");
  Scenario to = from;
  to.choice.policy.state_slots = 8;
  to.config.per_device_train_batch_size = 2;
  for (const Role role : {Role::master, Role::moment1, Role::moment2})
    to.choice.policy.fractions[static_cast<std::size_t>(role)] = {0.25, 0.75, 0};
  EXPECT_EQ(changed_keys(from, to),
            "per_device_train_batch_size=2 "
            "'offload.optimizer={gpu: 0.25, cpu: 0.75, nvme: 0}' offload.state_slots=8");
}

TEST(WhatIf, TriesPlacementsOfTheOptimizerAndLargerBatches) {
  const Scenario scenario = scenario_of(tiny(), workstation());
  const std::vector<Neighbour> found = what_if_neighbours(scenario, workstation());
  EXPECT_GE(found.size(), 12u);
  double fastest = 0;
  for (const Neighbour& neighbour : found) {
    const Trial trial = try_out(neighbour.scenario, workstation());
    EXPECT_TRUE(trial.fits()) << neighbour.name << ": " << trial.refusal;
    fastest = std::max(fastest, trial.tokens_per_s);
  }
  EXPECT_GT(fastest, try_out(scenario, workstation()).tokens_per_s);
}

TEST(WhatIf, TellsWhatANeighbourLacks) {
  Scenario scenario = scenario_of(tiny(), workstation());
  scenario.config.offload.gpu_limit = 400'000'000;
  for (TierFractions& fractions : scenario.choice.policy.fractions) fractions = {1, 0, 0};
  EXPECT_THAT(try_out(scenario, workstation()).refusal,
              ::testing::AllOf(HasSubstr("does not fit: gpu"), HasSubstr("more")));
}

TEST(Improvements, FitAndMakeItAsMuchFasterAsTheySay) {
  const Scenario scenario = scenario_of(tiny(), workstation());
  const Forecast now = forecast(scenario, workstation());
  const std::vector<Improvement> found = improvements(scenario, now, workstation());
  ASSERT_FALSE(found.empty()) << "a small model on a card of 24 GB has room for its state";
  EXPECT_LE(found.size(), 3u);
  double last = found.front().gain;
  for (const auto& [neighbour, gain] : found) {
    EXPECT_LE(gain, last);
    last = gain;
    EXPECT_THAT(changed_keys(scenario, neighbour.scenario), Not(IsEmpty()));
    const Forecast then = forecast(neighbour.scenario, workstation());
    EXPECT_NEAR(then.prediction.tokens_per_s() / now.prediction.tokens_per_s(), 1 + gain, 1e-9);
  }
}

TEST(NearestFit, GivesBackWhatItNeedNotChange) {
  const Scenario scenario = scenario_of(tiny(), workstation());
  const auto fits = nearest_fit(scenario, run_limits(scenario.config, workstation())).scenario;
  ASSERT_TRUE(fits);
  EXPECT_EQ(changed_keys(scenario, *fits), "");
}

TEST(NearestFit, FindsAPlanForLessMemoryOfEitherKind) {
  Scenario scenario = scenario_of(tiny(), workstation());
  scenario.config.per_device_train_batch_size = 4;
  for (TierFractions& fractions : scenario.choice.policy.fractions) fractions = {1, 0, 0};
  TierLimits limits = run_limits(scenario.config, workstation());
  const PlannedRun whole = plan_run(scenario.config, limits, scenario.choice, Proof::trusted);
  for (const double share : {0.8, 0.5, 0.3}) {
    limits.device_bytes =
        static_cast<std::uint64_t>(share * static_cast<double>(whole.plan.tier_bytes[0]));
    EXPECT_THROW(plan_run(scenario.config, limits, scenario.choice, Proof::trusted), OutOfMemory);
    const auto fits = nearest_fit(scenario, limits).scenario;
    ASSERT_TRUE(fits) << share;
    EXPECT_NO_THROW(plan_run(fits->config, limits, fits->choice, Proof::verified)) << share;
    EXPECT_THAT(changed_keys(scenario, *fits), Not(IsEmpty()));
  }
}

double share_on_device(const Scenario& scenario, Role role) {
  return scenario.choice.policy.fractions[static_cast<std::size_t>(role)].device;
}

TEST(NearestFit, GoesUpToTheGpuWhereThatHasRoomBeforeItGoesDownToNvme) {
  Scenario scenario = scenario_of(tiny(), workstation());
  for (TierFractions& fractions : scenario.choice.policy.fractions) fractions = {0, 1, 0};
  TierLimits limits = run_limits(scenario.config, workstation());
  const PlannedRun whole = plan_run(scenario.config, limits, scenario.choice, Proof::trusted);
  limits.host_bytes = whole.plan.tier_bytes[1] * 8 / 10;
  const auto fits = nearest_fit(scenario, limits).scenario;
  ASSERT_TRUE(fits);
  for (const TierFractions& fractions : fits->choice.policy.fractions) EXPECT_EQ(fractions.nvme, 0);
  EXPECT_GT(share_on_device(*fits, Role::master), 0);
  EXPECT_NO_THROW(plan_run(fits->config, limits, fits->choice, Proof::verified));
}

TEST(NearestFit, MovesNoMoreThanAHundredthBeyondWhatItHasTo) {
  Scenario scenario = scenario_of(tiny(), workstation());
  for (TierFractions& fractions : scenario.choice.policy.fractions) fractions = {1, 0, 0};
  TierLimits limits = run_limits(scenario.config, workstation());
  const PlannedRun whole = plan_run(scenario.config, limits, scenario.choice, Proof::trusted);
  limits.device_bytes = whole.plan.tier_bytes[0] * 9 / 10;
  const auto fits = nearest_fit(scenario, limits).scenario;
  ASSERT_TRUE(fits);
  ASSERT_LT(share_on_device(*fits, Role::master), 1);
  Scenario nearer = *fits;
  for (const Role role : {Role::master, Role::moment1, Role::moment2}) {
    TierFractions& f = nearer.choice.policy.fractions[static_cast<std::size_t>(role)];
    f = {f.device + 0.03, f.host - 0.03, 0};
  }
  EXPECT_THROW(plan_run(nearer.config, limits, nearer.choice, Proof::trusted), OutOfMemory);
}

TEST(NearestFit, MovesOfEachRoleOfTheOptimizerItsOwn) {
  Scenario scenario = scenario_of(tiny(), workstation());
  auto& fractions = scenario.choice.policy.fractions;
  fractions[static_cast<std::size_t>(Role::master)] = {0.5, 0.5, 0};
  fractions[static_cast<std::size_t>(Role::moment1)] = {0, 0.25, 0.75};
  fractions[static_cast<std::size_t>(Role::moment2)] = {0, 1, 0};
  TierLimits limits = run_limits(scenario.config, workstation());
  const PlannedRun whole = plan_run(scenario.config, limits, scenario.choice, Proof::trusted);
  limits.host_bytes = whole.plan.tier_bytes[1] * 9 / 10;
  const auto fits = nearest_fit(scenario, limits).scenario;
  ASSERT_TRUE(fits);
  const double moved = share_on_device(*fits, Role::moment2);
  EXPECT_GT(moved, 0);
  EXPECT_NEAR(share_on_device(*fits, Role::master), 0.5 + moved, 1e-9);
  EXPECT_EQ(fits->choice.policy.fractions[static_cast<std::size_t>(Role::moment1)].nvme, 0.75);
}

TEST(Refusal, AdvisesToRaiseOnlyALimitThatTheConfigSets) {
  const auto refusal_of = [](const RunConfig& config, const MachineProfile& machine) {
    try {
      forecast(scenario_of(config, machine), machine);
    } catch (const TierOverflow& refusal) {
      EXPECT_EQ(refusal.tier(), Tier::host);
      return std::string(refusal.what());
    }
    return std::string("fits");
  };
  RunConfig config = tiny();
  config.offload.cpu_limit = 1'000'000;
  EXPECT_THAT(refusal_of(config, workstation()), HasSubstr("raise offload.cpu_limit"));
  MachineProfile machine = workstation();
  machine.host.memory_bytes = 1'000'000;
  EXPECT_THAT(refusal_of(tiny(), machine), Not(HasSubstr("raise offload.cpu_limit")));
}

// Weights cross a slow link once for each micro-batch, and the GPU is full of state.
TEST(Improvements, NameWhatElseAChangeTakesToFit) {
  MachineProfile machine = workstation();
  machine.link = {2e9, 2e9, 0};
  Scenario scenario = scenario_of(tiny(), machine);
  scenario.config.gradient_accumulation_steps = 8;
  scenario.choice.variant.accumulation_group = 1;
  for (const Role role : {Role::master, Role::moment1, Role::moment2})
    scenario.choice.policy.fractions[static_cast<std::size_t>(role)] = {0.5, 0.5, 0};
  const PlannedRun full = plan_run(scenario.config, run_limits(scenario.config, machine),
                                   scenario.choice, Proof::trusted);
  scenario.config.offload.gpu_limit = full.plan.tier_bytes[0] + full.workspace_bytes + 100'000;
  bool is_repaired = false;
  for (const auto& [neighbour, gain] :
       improvements(scenario, forecast(scenario, machine), machine, 20)) {
    EXPECT_TRUE(try_out(neighbour.scenario, machine).fits()) << neighbour.name;
    is_repaired = is_repaired || neighbour.name.find(", with ") != std::string::npos;
  }
  EXPECT_TRUE(is_repaired);
}

TEST(RunFacts, CountWhatAResumeReadsAheadWhereThereMayBeOne) {
  RunConfig config = tiny();
  const auto load_bytes = [&] {
    return run_facts(config, plan_run(config, workstation()), 1).load_bytes;
  };
  const std::uint64_t may_be = load_bytes();
  EXPECT_GT(may_be, 3 * checkpoint_read_memory_bytes);
  config.save_strategy = SaveStrategy::no;
  const std::uint64_t never = load_bytes();
  EXPECT_LT(never, checkpoint_read_memory_bytes);
  config.resume_from_checkpoint = "elsewhere";
  EXPECT_EQ(load_bytes(), may_be);
}

TEST(NearestFit, FindsNoneWhereThereIsNone) {
  const Scenario scenario = scenario_of(tiny(), workstation());
  TierLimits limits = run_limits(scenario.config, workstation());
  limits.device_bytes = 1000;
  const NearestFit nearest = nearest_fit(scenario, limits);
  EXPECT_FALSE(nearest.scenario);
  EXPECT_GT(nearest.fit.missing(Tier::device), 0);
}

TEST(FastestScenario, IsNoSlowerThanWhatItBeganWithAndKeepsTheBatch) {
  const Scenario start = scenario_of(tiny(), workstation());
  const Scenario found = fastest_scenario(start, workstation());
  EXPECT_GE(try_out(found, workstation()).tokens_per_s,
            try_out(start, workstation()).tokens_per_s * (1 - 1e-9));
  EXPECT_EQ(found.config.per_device_train_batch_size, start.config.per_device_train_batch_size);
  EXPECT_EQ(found.config.gradient_accumulation_steps, start.config.gradient_accumulation_steps);
}

// --- Limits of host memory

TEST(HostLimit, HoldsWhatLoadsAndSavesTakeBesideTheTier) {
  RunConfig config = tiny();
  const Plan roomy = plan_run(config, workstation()).plan;
  ASSERT_GT(roomy.limits.buffer_bytes, 32 * MiB);
  config.offload.cpu_limit = roomy.tier_bytes[1] + roomy.limits.buffer_bytes;
  EXPECT_NO_THROW(forecast(scenario_of(config, workstation()), workstation()));
  config.offload.cpu_limit = *config.offload.cpu_limit - 1;
  EXPECT_THROW(forecast(scenario_of(config, workstation()), workstation()), OutOfMemory);
}

void expect_within(const Scenario& scenario, const MachineProfile& machine) {
  const Forecast made = forecast(scenario, machine);
  const std::uint64_t limit =
      *scenario.config.offload.cpu_limit / static_cast<std::uint64_t>(machine.ranks);
  for (const PhaseBytes& phase : made.prediction.phases)
    EXPECT_LE(phase.bytes[1], limit) << phase.name;
  EXPECT_LE(made.run.plan.tier_bytes[1] + made.run.plan.limits.buffer_bytes, limit);
}

class HostLimitOfRanks : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, HostLimitOfRanks, ::testing::Values(1, 2, 8));

TEST_P(HostLimitOfRanks, IsKeptByTheNearestFitAndByTheFastestPlan) {
  MachineProfile machine = workstation();
  machine.ranks = GetParam();
  machine.comm = {50e9, 50e9, 1e-5};
  RunConfig config = tiny();
  config.world = machine.ranks;
  const Plan roomy = plan_run(config, machine).plan;
  config.offload.cpu_limit = static_cast<std::uint64_t>(machine.ranks) *
                             (roomy.tier_bytes[1] * 8 / 10 + roomy.limits.buffer_bytes);
  const Scenario scenario = scenario_of(config, machine);
  EXPECT_THROW(forecast(scenario, machine), OutOfMemory);
  const auto fits = nearest_fit(scenario, run_limits(scenario.config, machine)).scenario;
  ASSERT_TRUE(fits);
  expect_within(*fits, machine);
  expect_within(fastest_scenario(scenario, machine), machine);
}

TEST(DeviceLimit, IsTheConfigsWhereTheGpuHasMore) {
  MachineProfile machine = workstation();
  RunConfig config;
  config.world = machine.ranks = 8;
  config.offload.gpu_limit = 1 * GiB;
  EXPECT_EQ(run_limits(config, machine).device_bytes, 1 * GiB - device_workspace_bytes(8));
  config.offload.gpu_limit = 1000 * GiB;
  const std::uint64_t most = run_limits(config, machine).device_bytes;
  config.offload.gpu_limit.reset();
  EXPECT_EQ(run_limits(config, machine).device_bytes, most);
}

// --- Drives that differ

MachineProfile with_unequal_drives() {
  MachineProfile machine = workstation();
  machine.drives.push_back({1'000'000'000'000, 1.25e9, 1e9, 1.5e9, 600e12});
  return machine;
}

std::vector<std::vector<Region>> homes_on_drives(const Plan& plan) {
  std::vector<std::vector<Region>> found;
  for (const std::vector<Region>& tiles : plan.homes) {
    found.emplace_back();
    for (const Region& home : tiles)
      if (home.tier == Tier::nvme) found.back().push_back(home);
  }
  return found;
}

void expect_same_homes(const Plan& a, const Plan& b) {
  const auto left = homes_on_drives(a), right = homes_on_drives(b);
  ASSERT_EQ(left.size(), right.size());
  for (std::size_t shard = 0; shard < left.size(); ++shard) {
    ASSERT_EQ(left[shard].size(), right[shard].size());
    for (std::size_t tile = 0; tile < left[shard].size(); ++tile) {
      EXPECT_EQ(left[shard][tile].drive, right[shard][tile].drive);
      EXPECT_EQ(left[shard][tile].offset, right[shard][tile].offset);
    }
  }
}

TEST(UnequalDrives, ArePredictedWithTheBytesWhereARunPutsThem) {
  RunConfig config = tiny();
  config.offload.nvme_paths = {testing::fresh_folder("drive0").string(),
                               testing::fresh_folder("drive1").string()};
  config.device = DeviceKind::cpu;
  config.compute_threads = config.update_threads = 1;
  const MachineProfile machine = with_unequal_drives();
  for (const std::vector<double>& weights :
       {std::vector<double>{}, std::vector<double>{4, 1}, std::vector<double>{1, 1}}) {
    config.offload.nvme_weights = weights;
    expect_same_homes(plan_run(config, machine).plan, plan_run(config, Purpose::train).plan);
  }
}

TEST(UnequalDrives, AreFasterWhenWeighedAndToldToHelp) {
  const MachineProfile machine = with_unequal_drives();
  RunConfig config = tiny();
  for (TierFractions* fractions :
       {&config.offload.master, &config.offload.moment1, &config.offload.moment2})
    *fractions = {0, 0, 1};
  const Scenario scenario = scenario_of(config, machine);
  const Forecast now = forecast(scenario, machine);
  bool is_told = false;
  for (const Improvement& found : improvements(scenario, now, machine, 20)) {
    if (found.neighbour.scenario.config.offload.nvme_weights.empty()) continue;
    is_told = true;
    EXPECT_THAT(changed_keys(scenario, found.neighbour.scenario),
                HasSubstr("'offload.nvme_weights=[4, 1]'"));
    EXPECT_GT(found.gain, 0.1);
  }
  EXPECT_TRUE(is_told);
}

}  // namespace
}  // namespace strata
