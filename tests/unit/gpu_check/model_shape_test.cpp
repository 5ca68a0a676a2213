#include "gpu_check/model_shape.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu_check/export_folder.hpp"
#include "gpu_check/placement.hpp"
#include "support/own_path.hpp"

namespace strata {
namespace {

using ::testing::HasSubstr;

constexpr double load_rate = 20e-9;
const ModelRates rates{10e-9, {{Placement::all_resident, load_rate}}};

std::vector<ModelCost> costs(StepSeconds large, StepSeconds small) {
  const auto steps = [](double resident, StepSeconds in_ram) {
    return std::map<Placement, StepSeconds>{{Placement::all_resident, resident},
                                            {Placement::searched, resident},
                                            {Placement::state_in_ram, in_ram}};
  };
  return {{large_shapes()[0], steps(0.5, large)}, {large_shapes()[1], steps(0.25, small)}};
}

std::string chosen(const std::vector<ModelCost>& from, double seconds) {
  const auto shape = choose_model(from, rates, seconds);
  return shape ? shape->name : "none";
}

TEST(ModelShape, HasTheParametersThatItsNameSays) {
  EXPECT_NEAR(static_cast<double>(shape_named("3B").num_parameters()), 3.0e9, 0.1e9);
  EXPECT_NEAR(static_cast<double>(shape_named("1B").num_parameters()), 1.1e9, 0.1e9);
  EXPECT_NEAR(static_cast<double>(small_shape().num_parameters()), 0.44e9, 0.02e9);
  EXPECT_THROW(shape_named("5B"), std::runtime_error);
}

TEST(ModelShape, IsTheLargestThatGetsThroughInTime) {
  // 3B: 30 s to make, 3 x (3 + 60) s to start and load, 3 x (0.5 + 0.5 + 20) s of steps.
  EXPECT_EQ(chosen(costs(20, 5), 300), "3B");
  EXPECT_EQ(chosen(costs(20, 5), 250), "1B");
  EXPECT_EQ(chosen(costs(20, 5), 50), "none");
}

TEST(ModelShape, NeedsTheTimeOfAllItsRuns) {
  const auto parameters = static_cast<double>(large_shapes()[0].num_parameters());
  EXPECT_DOUBLE_EQ(seconds_needed(costs(20, 5)[0], rates),
                   parameters * 10e-9 + 3 * (start_seconds + parameters * load_rate) + 3 * 21);
  EXPECT_FALSE(fits(costs(std::nullopt, 5)[0]));
}

TEST(ModelShape, IsNotOneOfWhichAPlacementDoesNotFit) {
  EXPECT_EQ(chosen(costs(std::nullopt, 5), 300), "1B");
  EXPECT_EQ(chosen(costs(std::nullopt, std::nullopt), 300), "none");
}

TEST(ModelShape, TakesAsManyStepsAsTheTimeAllows) {
  const ModelShape& shape = large_shapes()[1];  // 3 s to start, 22 s to load
  EXPECT_EQ(steps_within(shape, load_rate, 10, 1000), steps_wanted);
  EXPECT_EQ(steps_within(shape, load_rate, 10, 70), 4);
  EXPECT_EQ(steps_within(shape, load_rate, 10, 10), 0);
}

TEST(ModelRates, AreThePlacementsOwnElseTheLongestSeen) {
  const ModelRates seen{10e-9, {{Placement::all_resident, 1e-9}, {Placement::state_in_ram, 5e-9}}};
  EXPECT_EQ(seen.run_rate(Placement::all_resident), 1e-9);
  EXPECT_EQ(seen.run_rate(Placement::state_on_nvme), 5e-9);
  EXPECT_GT(ModelRates{}.run_rate(Placement::state_on_nvme), 5e-9);
}

RunFiles run_files() { return {"model", "a \"shard\".tok", "out", "exported", "nvme"}; }

TEST(Placement, ChangesNothingOfARunButWhereStateLives) {
  const auto config = [](Placement placement) {
    const std::string text = train_config(placement, tiny_shape(), run_files(), 4, "gpu");
    return text.substr(0, text.find("offload:"));
  };
  for (Placement placement : placements())
    EXPECT_EQ(config(placement), config(Placement::all_resident));
}

TEST(Placement, WritesPathsAndDeviceAsYaml) {
  const std::string text =
      train_config(Placement::state_on_nvme, tiny_shape(), run_files(), 4, "gpu");
  EXPECT_THAT(text, HasSubstr("dataset: \"a \\\"shard\\\".tok\"\n"));
  EXPECT_THAT(text, HasSubstr("device: gpu\n"));
  EXPECT_THAT(text, HasSubstr("  optimizer: nvme\n"));
  EXPECT_THAT(train_config(Placement::searched, tiny_shape(), run_files(), 4, ""),
              Not(HasSubstr("device:")));
}

TEST(Placement, HasTextForEveryStep) {
  const ModelShape& shape = tiny_shape();
  EXPECT_GE(static_cast<std::int64_t>(training_text(shape, 6).size()),
            shape.rows * shape.row_tokens * 6);
  EXPECT_EQ(training_text(shape, 6), training_text(shape, 6));
}

TEST(ExportFolder, ReadsMeminfo) {
  const std::string text = "MemTotal:       24 kB\nMemAvailable:   7 kB\n";
  EXPECT_EQ(meminfo_bytes(text, "MemAvailable"), 7 * 1024u);
  EXPECT_EQ(meminfo_bytes(text, "SwapFree"), 0u);
}

TEST(ExportFolder, IsOnTheDiskWhereThereIsNoMemory) {
  const std::filesystem::path disk = own_path("disk");
  EXPECT_EQ(export_folder(tiny_shape(), "", disk), disk / "exports");
  EXPECT_EQ(export_folder(tiny_shape(), "/no/such/folder", disk), disk / "exports");
  std::filesystem::remove_all(disk);
}

}  // namespace
}  // namespace strata
