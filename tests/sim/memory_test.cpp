// The planner tells the truth: what a run touches of each tier is what its plan says, and what does
// not fit is refused before it begins.

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "sim/tiny_training.hpp"
#include "strata/checkpoint/random_model.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"
#include "support/sanitizers.hpp"

namespace strata {
namespace {

using testing::fresh_folder;
using testing::make_training_files;
using testing::tiny_config;
using testing::TrainingRun;

constexpr std::uint64_t tile_bytes = 256 * KiB;

// 5 million parameters: 100 MB of state.
HfConfig mid_size_model() {
  HfConfig model = random_model_preset("tiny");
  model.vocab_size = 4096;
  model.hidden_size = 256;
  model.intermediate_size = 704;
  model.num_hidden_layers = 4;
  model.num_attention_heads = 4;
  model.num_key_value_heads = 2;
  model.head_dim = 64;
  return model;
}

RunConfig all_tiers_config() {
  static const testing::TrainingFiles files =
      make_training_files(mid_size_model(), 100, DType::bf16);
  RunConfig config = tiny_config(files);
  config.cutoff_len = 64;
  config.max_steps = 3;
  config.eval_steps = 0;
  config.offload.tile_bytes = tile_bytes;
  config.offload.io_engine =
      "threads";  // io_uring pins its buffers: all of them would count as touched
  for (TierFractions* role :
       {&config.offload.weights, &config.offload.gradients, &config.offload.master,
        &config.offload.moment1, &config.offload.moment2, &config.offload.activations})
    *role = {0.3, 0.4, 0.3};
  config.offload.nvme_paths = {fresh_folder("drive0").string(), fresh_folder("drive1").string()};
  return config;
}

// Of the tiles: a store's other files are a few kilobytes.
std::uint64_t allocated_bytes(const std::string& folder) {
  std::uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    struct stat facts = {};
    if (entry.path().filename() == "tiles" && ::stat(entry.path().c_str(), &facts) == 0)
      bytes += static_cast<std::uint64_t>(facts.st_blocks) * 512;
  }
  return bytes;
}

std::uint64_t process_resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t total_pages = 0, resident_pages = 0;
  file >> total_pages >> resident_pages;
  return resident_pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

void expect_within_plan(std::uint64_t measured, std::uint64_t planned, const std::string& tier) {
  std::printf("  %s: planned %s, measured %s\n", tier.c_str(), format_bytes(planned).c_str(),
              format_bytes(measured).c_str());
  ::testing::Test::RecordProperty(tier + "_planned_bytes", std::to_string(planned));
  ::testing::Test::RecordProperty(tier + "_measured_bytes", std::to_string(measured));
  EXPECT_LE(measured, planned) << tier;
  EXPECT_GE(static_cast<double>(measured), 0.95 * static_cast<double>(planned)) << tier;
}

TEST(Memory, OfEachTierIsTouchedAsPlannedToWithinFivePercent) {
  const RunConfig config = all_tiers_config();
  TrainingRun run(config);
  run.train();
  for (const TierPeak& peak : run.session().peaks()) {
    ASSERT_GT(peak.planned_bytes, 10 * MiB) << peak.tier;
    if (peak.tier != "nvme") expect_within_plan(peak.measured_bytes, peak.planned_bytes, peak.tier);
  }
}

TEST(Memory, OfEachDriveIsWhatThePlanPutsThere) {
  const RunConfig config = all_tiers_config();
  TrainingRun run(config);
  run.train();
  const Plan& plan = run.session().run().plan;
  ASSERT_EQ(plan.drive_bytes.size(), 2u);
  for (std::size_t drive = 0; drive < 2; ++drive)
    expect_within_plan(allocated_bytes(config.offload.nvme_paths[drive]), plan.drive_bytes[drive],
                       "drive" + std::to_string(drive));
}

// The process holds what the plan says and little else: kernels, threads and data in `slack`.
TEST(Memory, OfTheWholeProcessGrowsByThePlanAndLittleMore) {
  if (testing::sanitized) GTEST_SKIP() << "sanitizers keep memory of their own";
  constexpr std::uint64_t slack = 48 * MiB;
  const RunConfig config = all_tiers_config();
  const std::uint64_t before = process_resident_bytes();
  TrainingRun run(config);
  run.train();
  const std::uint64_t growth = process_resident_bytes() - before;
  const Plan& plan = run.session().run().plan;
  const std::uint64_t planned = plan.tier_bytes[0] + plan.tier_bytes[1];
  std::printf("  planned %s, process grew by %s\n", format_bytes(planned).c_str(),
              format_bytes(growth).c_str());
  RecordProperty("process_growth_bytes", std::to_string(growth));
  EXPECT_GE(growth, planned / 100 * 95);
  EXPECT_LE(growth, planned + slack);
}

struct Tight {
  const char* tier;
  std::size_t index;
  std::optional<std::uint64_t> OffloadConfig::*limit;
};
class Budget : public ::testing::TestWithParam<Tight> {};
INSTANTIATE_TEST_SUITE_P(Tiers, Budget,
                         ::testing::Values(Tight{"gpu", 0, &OffloadConfig::gpu_limit},
                                           Tight{"cpu", 1, &OffloadConfig::cpu_limit}),
                         [](const auto& chosen) { return std::string(chosen.param.tier); });

// A limit of host memory holds what loads and saves take beside the tier.
std::uint64_t need_of(const Plan& plan, std::size_t tier) {
  return plan.tier_bytes[tier] + (tier == 1 ? plan.limits.buffer_bytes : 0);
}
std::uint64_t need_of(const RunConfig& config, std::size_t tier) {
  return need_of(plan_run(config, Purpose::train).plan, tier);
}

TEST_P(Budget, OneTileTooSmallIsRefusedBeforeTheRunWithNeedAndContributors) {
  RunConfig config = all_tiers_config();
  const std::uint64_t need = need_of(config, GetParam().index);
  auto& limit = config.offload.*GetParam().limit;
  limit = need - tile_bytes;
  try {
    plan_run(config, Purpose::train);
    FAIL() << "accepted";
  } catch (const OutOfMemory& error) {
    const std::string text = error.what();
    EXPECT_EQ(error.wanted_bytes(), need);
    EXPECT_EQ(error.free_bytes(), need - tile_bytes);
    for (const std::string& part :
         {std::string("tier ") + GetParam().tier, std::to_string(need), std::string("largest: "),
          std::string("gradient "), std::string("master "),
          std::string("offload.") + GetParam().tier + "_limit"})
      EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
  }
}

TEST_P(Budget, OfExactlyTheNeedIsEnough) {
  RunConfig config = all_tiers_config();
  const std::uint64_t need = need_of(config, GetParam().index);
  config.offload.*GetParam().limit = need;
  config.max_steps = 1;
  TrainingRun run(config);
  EXPECT_EQ(run.train().steps, 1);
  EXPECT_EQ(need_of(run.session().run().plan, GetParam().index), need);
}

}  // namespace
}  // namespace strata
