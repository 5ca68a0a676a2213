// What a search prints, pasted behind a command line or into a config file, is what it simulated.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "strata/cli/config.hpp"
#include "strata/cli/machine_file.hpp"
#include "strata/train/auto_plan.hpp"
#include "strata/train/forecast.hpp"
#include "support/source_dir.hpp"

namespace strata {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::filesystem::path configs = source_dir() / "configs";

// "a=1 'b={gpu: 1}'" as a shell would cut it.
std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  bool is_quoted = false, is_open = false;
  for (const char c : line) {
    if (c == '\'') {
      is_quoted = !is_quoted;
    } else if (c == ' ' && !is_quoted) {
      is_open = false;
    } else {
      if (!std::exchange(is_open, true)) words.emplace_back();
      words.back() += c;
    }
  }
  return words;
}

RunConfig config_with(std::vector<std::string> settings, const std::vector<std::string>& more) {
  settings.insert(settings.end(), more.begin(), more.end());
  return parse_config("", "a test", settings);
}

std::uint64_t hash_of(const Scenario& scenario, const MachineProfile& machine) {
  const PlannedRun run = plan_run(scenario.config, run_limits(scenario.config, machine),
                                  scenario.choice, Proof::trusted);
  return plan_hash(run.program, run.plan);
}

// Memory short enough that fractions are not whole.
MachineProfile small_machine(std::uint64_t seed) {
  MachineProfile machine = read_machine_file(configs / "machines/1xRTX4090-128GB.yaml");
  machine.accelerator.memory_bytes = 900'000'000 + 173'000'000 * (seed % 7);
  machine.host.memory_bytes = 700'000'000 + 291'000'000 * (seed % 5);
  return machine;
}

std::vector<std::string> small_settings(std::uint64_t seed) {
  return {"model_name_or_path=" + (configs / "models/SmolLM2-135M").string(), "cutoff_len=512",
          "gradient_accumulation_steps=" + std::to_string(1 + seed % 3),
          "offload.tile_bytes=" + std::to_string((12 + 4 * (seed % 3)) << 20),
          "offload.nvme_paths=[drive0]"};
}

void expect_pasted_is_found(const std::vector<std::string>& settings,
                            const MachineProfile& machine) {
  const Scenario start = scenario_of(config_with(settings, {}), machine);
  const Scenario found = fastest_scenario(start, machine);
  const std::string keys = changed_keys(start, found);
  EXPECT_THAT(keys, Not(HasSubstr("-0")));
  const Scenario pasted = scenario_of(config_with(settings, words_of(keys)), machine);
  EXPECT_EQ(changed_keys(found, pasted), "");
  EXPECT_EQ(hash_of(pasted, machine), hash_of(found, machine)) << keys;
}

TEST(AutoKeys, PastedMakeThePlanThatWasFound) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE(seed);
    expect_pasted_is_found(small_settings(seed), small_machine(seed));
  }
}

TEST(AutoKeys, PastedAreThePlanOfAShippedModelOnAShippedMachine) {
  for (const char* machine : {"1xRTX4090-128GB"}) {
    SCOPED_TRACE(machine);
    expect_pasted_is_found(
        {"model_name_or_path=" + (configs / "models/SmolLM2-1.7B").string(), "cutoff_len=2048",
         "offload.tile_bytes=64MiB", "offload.nvme_paths=[drive0]"},
        read_machine_file(configs / "machines" / (std::string(machine) + ".yaml")));
  }
}

TEST(AutoKeys, AsABlockOfAConfigFileAreThePlanThatWasChosen) {
  for (std::uint64_t seed = 0; seed < 2; ++seed) {
    const MachineProfile machine = small_machine(seed);
    const RunConfig chosen = auto_plan(config_with(small_settings(seed), {}), machine);
    const std::string block = auto_plan_block(chosen);
    EXPECT_THAT(block, Not(HasSubstr("-0")));
    const RunConfig pasted = parse_config(block, "pasted", small_settings(seed));
    EXPECT_EQ(hash_of(scenario_of(pasted, machine), machine),
              hash_of(scenario_of(chosen, machine), machine))
        << block;
  }
}

TEST(AutoKeys, WeighDrivesThatDiffer) {
  MachineProfile machine = small_machine(3);
  machine.drives.push_back(machine.drives.front());
  machine.drives.back().read_bytes_per_s /= 4;
  machine.drives.back().write_bytes_per_s /= 4;
  std::vector<std::string> settings = small_settings(3);
  settings.push_back("offload.nvme_paths=[drive0, drive1]");
  expect_pasted_is_found(settings, machine);
  const RunConfig chosen = auto_plan(config_with(settings, {}), machine);
  EXPECT_EQ(chosen.offload.nvme_weights, (std::vector<double>{4, 1}));
  EXPECT_THAT(auto_plan_block(chosen), HasSubstr("\n  nvme_weights: [4, 1]\n"));
  settings.push_back("offload.nvme_weights=[1, 1]");
  EXPECT_EQ(auto_plan(config_with(settings, {}), machine).offload.nvme_weights,
            (std::vector<double>{1, 1}))
      << "the config's own stay";
}

class NearestFitKeys : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, NearestFitKeys, ::testing::Values(1, 2, 8));

TEST_P(NearestFitKeys, PastedFit) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    MachineProfile machine = small_machine(seed);
    machine.ranks = GetParam();
    machine.comm = {50e9, 50e9, 1e-5};
    // Beside what is shared, what each takes to load and to save in, and for its slots.
    machine.host.memory_bytes += 600'000'000 * static_cast<std::uint64_t>(machine.ranks);
    std::vector<std::string> settings = small_settings(seed);
    settings.push_back(seed % 2 == 0 ? "offload.optimizer=gpu" : "offload.optimizer=cpu");
    const Scenario start = scenario_of(config_with(settings, {}), machine);
    const TierLimits limits = run_limits(start.config, machine);
    const auto [fits, fit] = nearest_fit(start, limits);
    ASSERT_TRUE(fits) << seed << ": " << format_fit(fit);
    const RunConfig pasted = config_with(settings, words_of(changed_keys(start, *fits)));
    EXPECT_NO_THROW(forecast(scenario_of(pasted, machine), machine)) << seed;
  }
}

}  // namespace
}  // namespace strata
