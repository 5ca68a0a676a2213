#include <nlohmann/json.hpp>

#include "checkpoint_testing.hpp"
#include "strata/checkpoint/hf_folder.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

const std::vector<ExpectedTensor> two_tensors{{"a", {2}}, {"b", {1, 2}}};
const std::vector<ExpectedTensor> tied{{"model.embed_tokens.weight", {2, 1}}};

void write_index(const TempFolder& folder, const json& weight_map) {
  write_bytes(folder / "model.safetensors.index.json",
              json{{"metadata", {{"total_size", 16}}}, {"weight_map", weight_map}}.dump());
}

std::string complaint(const TempFolder& folder, const std::vector<ExpectedTensor>& expected) {
  return error_of<FormatError>([&] { HfWeights weights(folder.path(), expected); });
}

// A good folder of two shards, for tests to break.
void write_two_shards(const TempFolder& folder) {
  write_f32_safetensors(folder / "one.safetensors", {{"a", {2}, {1, 2}}});
  write_f32_safetensors(folder / "two.safetensors", {{"b", {1, 2}, {3, 4}}});
  write_index(folder, {{"a", "one.safetensors"}, {"b", "two.safetensors"}});
}

TEST(HfWeights, ReadsASingleFile) {
  const TempFolder folder;
  write_f32_safetensors(folder / "model.safetensors", {{"a", {2}, {1, 2}}, {"b", {1, 2}, {3, 4}}});
  const HfWeights weights(folder.path(), two_tensors);
  EXPECT_EQ(weights.total_bytes(), 16u);
  EXPECT_EQ(weights.dtype("a"), DType::f32);
  std::vector<float> values(1);
  weights.read_f32("b", 1, values);
  EXPECT_EQ(values[0], 4);
}

TEST(HfWeights, ReadsShardsThroughTheirIndex) {
  const TempFolder folder;
  write_two_shards(folder);
  const HfWeights weights(folder.path(), two_tensors);
  std::vector<float> values(2);
  weights.read_f32("b", 0, values);
  EXPECT_EQ(values, (std::vector<float>{3, 4}));
}

TEST(HfWeights, ConvertsBf16AndF16ToFp32) {
  const TempFolder folder;
  SafetensorsWriter writer(folder / "model.safetensors",
                           {{"a", DType::bf16, {2}}, {"b", DType::f16, {1, 2}}});
  const std::vector<std::uint16_t> bits{0x3fc0, 0xc000, 0x3c00, 0x0001};  // 1.5 -2 | 1 2^-24
  writer.append(std::as_bytes(std::span(bits)));
  writer.finish();
  const HfWeights weights(folder.path(), two_tensors);
  EXPECT_EQ(weights.dtype("b"), DType::f16);
  std::vector<float> values(2);
  weights.read_f32("a", 0, values);
  EXPECT_EQ(values, (std::vector<float>{1.5f, -2.0f}));
  weights.read_f32("b", 0, values);
  EXPECT_EQ(values, (std::vector<float>{1.0f, 0x1p-24f}));
}

TEST(HfWeights, ConvertsATensorLargerThanItsBuffer) {
  const TempFolder folder;
  constexpr std::size_t count = 600'001;
  std::vector<bfloat16> stored(count);
  for (std::size_t i = 0; i < count; ++i) stored[i] = to_bfloat16(static_cast<float>(i % 251));
  SafetensorsWriter writer(folder / "model.safetensors",
                           {{"a", DType::bf16, {static_cast<std::int64_t>(count)}}});
  writer.append(std::as_bytes(std::span(stored)));
  writer.finish();
  const HfWeights weights(folder.path(), std::vector<ExpectedTensor>{{"a", {count}}});
  std::vector<float> values(count - 3);
  weights.read_f32("a", 3, values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(values[i], static_cast<float>((i + 3) % 251));
  }
}

TEST(HfWeights, NamesMissingUnknownAndMisshapenTensorsInOneMessage) {
  const TempFolder folder;
  write_f32_safetensors(folder / "model.safetensors", {{"a", {1, 2}, {1, 2}}, {"c", {1}, {3}}});
  const std::string text = complaint(folder, two_tensors);
  EXPECT_THAT(text, HasSubstr("missing (1): b"));
  EXPECT_THAT(text, HasSubstr("unknown (1): \"c\""));
  EXPECT_THAT(text, HasSubstr("a [1, 2] instead of [2]"));
}

TEST(HfWeights, NamesTheFirst20AndTheCount) {
  const TempFolder folder;
  write_f32_safetensors(folder / "model.safetensors", {});
  std::vector<ExpectedTensor> many;
  for (int i = 100; i < 125; ++i) many.push_back({std::string("t").append(std::to_string(i)), {1}});
  const std::string text = complaint(folder, many);
  EXPECT_THAT(text, HasSubstr("t119, ... (25 in all)"));
  EXPECT_THAT(text, Not(HasSubstr("t120")));
}

TEST(HfWeights, RefusesIntegerWeightsByName) {
  const TempFolder folder;
  SafetensorsWriter writer(folder / "model.safetensors", {{"a", DType::i32, {1}}});
  writer.append(std::vector<std::byte>(4));
  writer.finish();
  EXPECT_THAT(complaint(folder, {{"a", {1}}}), HasSubstr("a is I32"));
}

TEST(HfWeights, IgnoresOldRotaryTables) {
  const TempFolder folder;
  write_f32_safetensors(folder / "model.safetensors",
                        {{"a", {2}, {1, 2}},
                         {"b", {1, 2}, {3, 4}},
                         {"model.layers.0.self_attn.rotary_emb.inv_freq", {3}, {1, 1, 1}}});
  EXPECT_EQ(HfWeights(folder.path(), two_tensors).total_bytes(), 16u);
}

TEST(HfWeights, AcceptsATiedHeadThatEqualsTheEmbedding) {
  const TempFolder folder;
  write_f32_safetensors(
      folder / "model.safetensors",
      {{"model.embed_tokens.weight", {2, 1}, {1, 2}}, {"lm_head.weight", {2, 1}, {1, 2}}});
  EXPECT_EQ(HfWeights(folder.path(), tied).total_bytes(), 8u);
}

TEST(HfWeights, RefusesATiedHeadThatDiffersInOneBit) {
  const TempFolder folder;
  write_f32_safetensors(
      folder / "model.safetensors",
      {{"model.embed_tokens.weight", {2, 1}, {1, 0.0f}}, {"lm_head.weight", {2, 1}, {1, -0.0f}}});
  EXPECT_THAT(complaint(folder, tied), HasSubstr("tie_word_embeddings"));
}

TEST(HfWeights, RefusesAnUntiedModelWithoutAHead) {
  const TempFolder folder;
  write_f32_safetensors(folder / "model.safetensors",
                        {{"model.embed_tokens.weight", {2, 1}, {1, 2}}});
  std::vector<ExpectedTensor> untied = tied;
  untied.push_back({"lm_head.weight", {2, 1}});
  const std::string text = complaint(folder, untied);
  EXPECT_THAT(text, HasSubstr("missing (1): lm_head.weight"));
  EXPECT_THAT(text, HasSubstr("\"tie_word_embeddings\": true"));
}

TEST(HfWeights, RefusesAnIndexThatLeadsOutOfTheFolder) {
  const TempFolder folder;
  write_two_shards(folder);
  for (const char* file :
       {"../one.safetensors", "/etc/passwd", "sub/one.safetensors", "..\\one.safetensors", "..", "",
        ".hidden.safetensors", "one.bin", "nul\x01.safetensors"}) {
    write_index(folder, {{"a", file}, {"b", "two.safetensors"}});
    EXPECT_THAT(complaint(folder, two_tensors), HasSubstr("plain")) << file;
  }
  write_index(folder, {{"a", std::string("x\0.safetensors", 14)}, {"b", "two.safetensors"}});
  EXPECT_THAT(complaint(folder, two_tensors), HasSubstr("plain"));
}

TEST(HfWeights, RefusesAListedFileThatIsAbsent) {
  const TempFolder folder;
  write_two_shards(folder);
  std::filesystem::remove(folder / "two.safetensors");
  EXPECT_THAT(complaint(folder, two_tensors), HasSubstr("absent: two.safetensors"));
  write_index(folder, {{"a", std::string(4000, 'x').append(".safetensors")}});
  EXPECT_THAT(complaint(folder, two_tensors), HasSubstr("absent"));
}

TEST(HfWeights, RefusesATensorInTwoFiles) {
  const TempFolder folder;
  write_two_shards(folder);
  std::filesystem::remove(folder / "two.safetensors");
  write_f32_safetensors(folder / "two.safetensors", {{"a", {2}, {9, 9}}, {"b", {1, 2}, {3, 4}}});
  EXPECT_THAT(complaint(folder, two_tensors), HasSubstr("two.safetensors, but"));
}

TEST(HfWeights, RefusesAnIndexNamingATensorThatItsFileLacks) {
  const TempFolder folder;
  write_two_shards(folder);
  write_index(folder,
              {{"a", "one.safetensors"}, {"b", "two.safetensors"}, {"c", "two.safetensors"}});
  EXPECT_THAT(complaint(folder, two_tensors), HasSubstr("\"c\" (two.safetensors)"));
}

TEST(HfWeights, RefusesATensorThatTheIndexDoesNotName) {
  const TempFolder folder;
  write_two_shards(folder);
  write_f32_safetensors(folder / "three.safetensors", {{"c", {1}, {1}}, {"d", {1}, {1}}});
  write_index(folder,
              {{"a", "one.safetensors"}, {"b", "two.safetensors"}, {"c", "three.safetensors"}});
  EXPECT_THAT(complaint(folder, two_tensors), HasSubstr("\"d\""));
}

TEST(HfWeights, RefusesABrokenIndex) {
  const TempFolder folder;
  write_two_shards(folder);
  const auto complaint_of = [&](const std::string& text) {
    write_bytes(folder / "model.safetensors.index.json", text);
    return complaint(folder, two_tensors);
  };
  EXPECT_THAT(complaint_of("{}"), HasSubstr("weight_map"));
  EXPECT_THAT(complaint_of(R"({"weight_map":[]})"), HasSubstr("weight_map"));
  EXPECT_THAT(complaint_of(R"({"weight_map":{}})"), HasSubstr("empty"));
  EXPECT_THAT(complaint_of(R"({"weight_map":{"a":3}})"), HasSubstr("no text"));
  EXPECT_THAT(complaint_of(R"({"weight_map":{"a":"one.safetensors","a":"two.safetensors"}})"),
              HasSubstr("duplicate"));
  EXPECT_THAT(complaint_of("{\"weight_map\":{\"\xff\":\"one.safetensors\"}}"), HasSubstr("UTF-8"));
}

TEST(HfWeights, RefusesAFolderWithASingleFileAndAnIndexOfOthers) {
  const TempFolder folder;
  write_two_shards(folder);
  write_f32_safetensors(folder / "model.safetensors", {{"a", {2}, {1, 2}}, {"b", {1, 2}, {3, 4}}});
  EXPECT_THAT(error_of<ConfigError>([&] { HfWeights weights(folder.path(), two_tensors); }),
              HasSubstr("remove one"));
}

TEST(HfWeights, SaysWhatIsMissingWhenThereAreNoWeights) {
  const TempFolder folder;
  const auto text = [&] {
    return error_of<ConfigError>([&] { HfWeights weights(folder.path(), two_tensors); });
  };
  EXPECT_THAT(text(), HasSubstr("neither model.safetensors nor"));
  write_bytes(folder / "pytorch_model.bin", "");
  EXPECT_THAT(text(), HasSubstr("pytorch_model.bin is not read"));
}

TEST(HfWeights, FollowsLinksAsDownloadCachesUseThem) {
  const TempFolder folder, cache;
  write_f32_safetensors(cache / "blob", {{"a", {2}, {1, 2}}, {"b", {1, 2}, {3, 4}}});
  std::filesystem::create_symlink(cache / "blob", folder / "model.safetensors");
  EXPECT_EQ(HfWeights(folder.path(), two_tensors).total_bytes(), 16u);
}

}  // namespace
}  // namespace strata
