// Over how many drives tiles are striped, with which weights, by which engine, verified or not:
// none of it changes a bit.

#include <gtest/gtest.h>

#include <numeric>

#include "sim/tiny_training.hpp"
#include "strata/core/bytes.hpp"
#include "support/sanitizers.hpp"

namespace strata {
namespace {

using testing::difference;
using testing::fresh_folder;
using testing::make_sim_engine_for;
using testing::Outcome;
using testing::rounds;
using testing::tiny_config;
using testing::tiny_files;
using testing::train;

struct DriveSet {
  std::size_t count;
  std::vector<double> weights;
};

RunConfig all_striped(const DriveSet& drives) {
  RunConfig config = tiny_config(tiny_files());
  config.max_steps = rounds(10, 4);
  OffloadConfig& o = config.offload;
  for (TierFractions* role :
       {&o.weights, &o.gradients, &o.master, &o.moment1, &o.moment2, &o.activations})
    *role = {0, 0, 1};
  for (std::size_t i = 0; i < drives.count; ++i)
    o.nvme_paths.push_back(fresh_folder("drive").string());
  o.nvme_weights = drives.weights;
  return config;
}

const Outcome& on_one_drive() {
  static const Outcome outcome = train(all_striped({1, {}}), {ExecutionMode::serial});
  return outcome;
}

class Striping : public ::testing::TestWithParam<DriveSet> {};

INSTANTIATE_TEST_SUITE_P(Over, Striping,
                         ::testing::Values(DriveSet{1, {}}, DriveSet{3, {}},
                                           DriveSet{3, {1, 2, 3}}),
                         [](const auto& chosen) {
                           return std::to_string(chosen.param.count) +
                                  (chosen.param.weights.empty() ? "Alike" : "Weighted");
                         });

TEST_P(Striping, NeverChangesABitWhateverTheEngineAndVerification) {
  for (const bool verified : {false, true}) {
    RunConfig config = all_striped(GetParam());
    config.offload.verify_nvme = verified;
    for (const char* engine : {"auto", "threads"}) {
      config.offload.io_engine = engine;
      EXPECT_EQ(difference(on_one_drive(), train(config)), "") << engine << " " << verified;
    }
    const Outcome simulated = train(config, {}, [](const OffloadConfig& offload) {
      return make_sim_engine_for(offload,
                                 {.latency_us_max = 50, .short_transfer_probability = 0.05});
    });
    EXPECT_EQ(difference(on_one_drive(), simulated), "") << "sim " << verified;
  }
}

TEST_P(Striping, PutsOnEachDriveItsShareToOneTile) {
  const RunConfig config = all_striped(GetParam());
  const Plan plan = plan_run(config, Purpose::train).plan;
  std::vector<double> weights = GetParam().weights;
  if (weights.empty()) weights.assign(GetParam().count, 1);
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  ASSERT_EQ(plan.drive_bytes.size(), weights.size());
  for (std::size_t drive = 0; drive < weights.size(); ++drive)
    EXPECT_NEAR(static_cast<double>(plan.drive_bytes[drive]),
                static_cast<double>(plan.tier_bytes[2]) * weights[drive] / sum,
                static_cast<double>(config.offload.tile_bytes))
        << "drive " << drive;
}

}  // namespace
}  // namespace strata
