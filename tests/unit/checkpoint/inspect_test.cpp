#include "strata/checkpoint/inspect.hpp"

#include <cmath>
#include <limits>

#include "checkpoint_testing.hpp"
#include "strata/checkpoint/random_model.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(InspectSafetensors, ListsTensorsAndTotals) {
  const TempFolder folder;
  write_f32_safetensors(folder / "a",
                        {{"weight", {2, 3}, {1, 2, 3, 4, 5, 6}}, {"bias", {2}, {0, 0}}});
  const std::string text = inspect_safetensors(folder / "a");
  EXPECT_THAT(text, ContainsRegex("weight +F32 +\\[2, 3\\] +24 +24 B"));
  EXPECT_THAT(text, HasSubstr("2 tensors, 8 elements, 32 B (32 bytes)"));
  EXPECT_THAT(text, HasSubstr("metadata \"format\": \"pt\""));
  EXPECT_THAT(text, Not(HasSubstr("mean")));
}

TEST(InspectSafetensors, MeasuresElementsOnRequest) {
  const TempFolder folder;
  constexpr float infinity = std::numeric_limits<float>::infinity();
  write_f32_safetensors(folder / "a", {{"w", {5}, {-1, 4, 0, NAN, infinity}}, {"none", {0}, {}}});
  const std::string text = inspect_safetensors(folder / "a", InspectStatistics::per_tensor);
  EXPECT_THAT(text, ContainsRegex("w +F32 +\\[5\\] +20 +20 B +-1 +4 +1 +2\n"));
  EXPECT_THAT(text, ContainsRegex("none +F32 +\\[0\\] +0 +0 B +- +- +- +0\n"));
}

TEST(InspectSafetensors, EscapesHostileNames) {
  const TempFolder folder;
  write_f32_safetensors(folder / "a", {{"evil\x1b[2J", {1}, {1}}});
  const std::string text = inspect_safetensors(folder / "a");
  EXPECT_THAT(text, HasSubstr("\"evil\\u001b[2J\""));
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

TEST(InspectSafetensors, ThrowsOnABrokenFile) {
  const TempFolder folder;
  write_bytes(folder / "a", "nonsense");
  error_of<FormatError>([&] { inspect_safetensors(folder / "a"); });
}

TEST(InspectModelFolder, SummarisesAGoodFolder) {
  const TempFolder folder;
  make_random_model(folder / "m", {.config = random_model_preset("tiny"), .shard_bytes = 50'000});
  const std::string text = inspect_model_folder(folder / "m", InspectStatistics::per_tensor);
  EXPECT_THAT(text, HasSubstr("LlamaForCausalLM"));
  EXPECT_THAT(text, HasSubstr("4 query, 2 key-value, head_dim 16"));
  EXPECT_THAT(text, HasSubstr("model.safetensors.index.json"));
  EXPECT_THAT(text, ContainsRegex("model.norm.weight +BF16 +\\[64\\] +128 +128 B +1 +1 +1 +0\n"));
  EXPECT_THAT(text, HasSubstr("30 tensors"));
  EXPECT_THAT(text, HasSubstr("tensors match config.json: ok"));
  EXPECT_THAT(text, HasSubstr("all elements finite: ok"));
  EXPECT_THAT(text, Not(HasSubstr("FAILED")));
}

TEST(InspectModelFolder, ReportsWhatFailsAndShowsTheRest) {
  const TempFolder folder;
  write_bytes(folder / "config.json", R"({"architectures":["Qwen3MoeForCausalLM"]})");
  write_f32_safetensors(folder / "model.safetensors", {{"w", {1}, {NAN}}});
  const std::string text = inspect_model_folder(folder.path(), InspectStatistics::per_tensor);
  EXPECT_THAT(text, ContainsRegex("config.json: FAILED: .*Qwen3MoeForCausalLM"));
  EXPECT_THAT(text, HasSubstr("safetensors files and index: ok"));
  EXPECT_THAT(text, HasSubstr("all elements finite: FAILED: 1 elements"));
  EXPECT_THAT(text, HasSubstr("1 tensors"));
}

TEST(InspectModelFolder, ReportsTensorsThatDoNotMatchTheConfig) {
  const TempFolder folder;
  make_random_model(folder / "m", {.config = random_model_preset("tiny"), .shape_only = true});
  write_f32_safetensors(folder / "m" / "model.safetensors", {{"w", {1}, {1}}});
  EXPECT_THAT(inspect_model_folder(folder / "m"),
              ContainsRegex("tensors match config.json: FAILED: .*missing"));
}

TEST(InspectModelFolder, RefusesWhatIsNoFolder) {
  const TempFolder folder;
  error_of<ConfigError>([&] { inspect_model_folder(folder / "none"); });
}

}  // namespace
}  // namespace strata
