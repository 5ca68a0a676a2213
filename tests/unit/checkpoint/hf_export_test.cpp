#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "checkpoint_testing.hpp"
#include "support/file_size_limit.hpp"
#include "src/checkpoint/config_dtype.hpp"
#include "src/checkpoint/elements.hpp"
#include "strata/checkpoint/llama_tensors.hpp"
#include "strata/checkpoint/random_model.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;
namespace fs = std::filesystem;

// A base folder with weights and all the files that travel, and some that do not.
class HfExport : public ::testing::Test {
 protected:
  HfExport() {
    make_random_model(base_, {.config = random_model_preset("tiny")});
    for (const char* name : copied_)
      write_bytes(base_ / name, std::string("bytes of ").append(name));
    for (const char* name : {"README.md", "training_args.bin", "optimizer.pt"}) {
      write_bytes(base_ / name, "stays");
    }
    tensors_ = llama_tensors(read_hf_config(base_));
  }

  TensorSource source_of(const HfWeights& weights) const {
    return [&weights](const std::string& name, std::int64_t first, DType dtype,
                      std::span<std::byte> target) {
      std::vector<float> values(target.size() / static_cast<std::size_t>(dtype_bytes(dtype)));
      weights.read_f32(name, first, values);
      from_f32(values, dtype, target);
    };
  }

  void export_to(const fs::path& target, const ExportOptions& options = {}) const {
    const HfWeights weights(base_, tensors_);
    export_hf_folder(base_, target, tensors_, source_of(weights), options);
  }

  void expect_equal_weights(const fs::path& folder) const {
    const HfWeights before(base_, tensors_), after(folder, tensors_);
    for (const ExpectedTensor& tensor : tensors_) {
      std::vector<float> a(static_cast<std::size_t>(element_count(tensor))), b(a.size());
      before.read_f32(tensor.name, 0, a);
      after.read_f32(tensor.name, 0, b);
      ASSERT_EQ(a, b) << tensor.name;
    }
  }

  // Where a tensor begins in the only file of a folder.
  static std::uint64_t file_offset_of(const fs::path& folder, const std::string& name) {
    const fs::path path = folder / "model.safetensors";
    const SafetensorsReader reader(path);
    return fs::file_size(path) - reader.tensors().back().end + reader.find(name)->begin;
  }

  // The folder of the export under way.
  fs::path unfinished() const {
    for (const auto& entry : fs::directory_iterator(folder_.path()))
      if (entry.path().filename().string().starts_with("out.tmp-")) return entry.path();
    ADD_FAILURE() << "no export is under way";
    return {};
  }

  std::vector<std::string> entries() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }

  static constexpr std::array copied_{"generation_config.json",
                                      "tokenizer.json",
                                      "tokenizer_config.json",
                                      "special_tokens_map.json",
                                      "added_tokens.json",
                                      "tokenizer.model",
                                      "vocab.json",
                                      "merges.txt",
                                      "chat_template.jinja",
                                      "chat_template.json",
                                      "LICENSE",
                                      "LICENSE.txt",
                                      "USE_POLICY.md",
                                      "NOTICE"};
  TempFolder folder_;
  fs::path base_ = folder_ / "base";
  std::vector<ExpectedTensor> tensors_;
};

TEST_F(HfExport, ReopensEqual) {
  export_to(folder_ / "out");
  EXPECT_TRUE(fs::exists(folder_ / "out" / "model.safetensors"));
  expect_equal_weights(folder_ / "out");
  EXPECT_EQ(read_bytes(folder_ / "out" / "model.safetensors"),
            read_bytes(base_ / "model.safetensors"));
}

TEST_F(HfExport, ReopensEqualFromShards) {
  export_to(folder_ / "out", {.shard_bytes = 50'000});
  EXPECT_TRUE(fs::exists(folder_ / "out" / "model.safetensors.index.json"));
  EXPECT_FALSE(fs::exists(folder_ / "out" / "model.safetensors"));
  expect_equal_weights(folder_ / "out");
}

TEST_F(HfExport, CopiesTokenizerGenerationAndLicenceFilesByteForByte) {
  export_to(folder_ / "out");
  for (const char* name : copied_) {
    EXPECT_EQ(read_bytes(folder_ / "out" / name), std::string("bytes of ").append(name));
  }
  EXPECT_FALSE(fs::exists(folder_ / "out" / "README.md"));
  EXPECT_FALSE(fs::exists(folder_ / "out" / "training_args.bin"));
}

TEST_F(HfExport, KeepsTheConfigsBytesWhenTheDtypeIsTheSame) {
  std::string odd = read_bytes(base_ / "config.json");
  odd.insert(1, "\n\t \"unknown_key\" : [1.50, {\"dtype\": \"x\"}] ,");
  write_bytes(base_ / "config.json", odd);
  export_to(folder_ / "out");
  EXPECT_EQ(read_bytes(folder_ / "out" / "config.json"), odd);
}

TEST_F(HfExport, WritesAWindowAsTheBaseStatesIt) {
  std::string text = read_bytes(base_ / "config.json");
  const std::string llama = R"("LlamaForCausalLM")", type = R"("llama")";
  text.replace(text.find(llama), llama.size(), R"("MistralForCausalLM")");
  text.replace(text.find(type), type.size(), R"("mistral", "sliding_window" :4096)");
  write_bytes(base_ / "config.json", text);
  export_to(folder_ / "out");
  EXPECT_EQ(read_bytes(folder_ / "out" / "config.json"), text);
  EXPECT_EQ(read_hf_config(folder_ / "out").sliding_window, 4096);
}

TEST_F(HfExport, ChangesOnlyTheDtypeOfTheConfig) {
  export_to(folder_ / "out", {.dtype = DType::f32});
  std::string expected = read_bytes(base_ / "config.json");
  const std::string old = "\"torch_dtype\": \"bfloat16\"";
  expected.replace(expected.find(old), old.size(), "\"torch_dtype\": \"float32\"");
  EXPECT_EQ(read_bytes(folder_ / "out" / "config.json"), expected);
  const SafetensorsReader reader(folder_ / "out" / "model.safetensors");
  EXPECT_EQ(reader.tensors()[0].dtype, DType::f32);
  expect_equal_weights(folder_ / "out");
}

TEST_F(HfExport, WritesTheCardAsReadme) {
  export_to(folder_ / "out", {.card = "# A card\n"});
  EXPECT_EQ(read_bytes(folder_ / "out" / "README.md"), "# A card\n");
}

TEST_F(HfExport, RefusesAnExistingTarget) {
  fs::create_directory(folder_ / "out");
  const auto text = error_of<ConfigError>([&] { export_to(folder_ / "out/"); });
  EXPECT_THAT(text, HasSubstr("exists already; choose another"));
  EXPECT_TRUE(fs::is_empty(folder_ / "out"));
  fs::create_symlink(folder_ / "nowhere", folder_ / "link");
  error_of<ConfigError>([&] { export_to(folder_ / "link"); });
}

TEST_F(HfExport, MakesTheParentsOfTheTarget) {
  export_to(folder_ / "deep/er/out");
  expect_equal_weights(folder_ / "deep/er/out");
}

TEST_F(HfExport, LeavesNothingBehindWhenAWriteFails) {
  std::string text;
  {
    const FileSizeLimit limit(64 * 1024);
    text = error_of<SystemError>([&] { export_to(folder_ / "out"); });
  }
  EXPECT_THAT(text, HasSubstr("bytes) free"));
  EXPECT_THAT(text, HasSubstr("model.safetensors"));
  EXPECT_THAT(entries(), ElementsAre("base"));
}

TEST_F(HfExport, LeavesNothingBehindWhenTheSourceFails) {
  const TensorSource broken = [](const std::string&, std::int64_t, DType, std::span<std::byte>) {
    throw ConfigError("the source is broken");
  };
  error_of<ConfigError>([&] { export_hf_folder(base_, folder_ / "out", tensors_, broken, {}); });
  EXPECT_THAT(entries(), ElementsAre("base"));
}

// A drive that keeps another byte than it was given, of a tensor that is written: after the last
// one of the model.
TEST_F(HfExport, NamesTheTensorThatDoesNotComeBackAndLeavesNothingBehind) {
  const std::string& name = tensors_.front().name;
  export_to(folder_ / "good");
  const std::uint64_t offset = file_offset_of(folder_ / "good", name);
  const HfWeights weights(base_, tensors_);
  const TensorSource source = source_of(weights);
  const TensorSource spoiling = [&](const std::string& asked, std::int64_t first, DType dtype,
                                    std::span<std::byte> target) {
    source(asked, first, dtype, target);
    if (asked == tensors_.back().name) spoil(unfinished() / "model.safetensors", offset + 3);
  };
  const std::string said =
      error_of<Error>([&] { export_hf_folder(base_, folder_ / "out", tensors_, spoiling, {}); });
  EXPECT_THAT(said,
              HasSubstr(fmt::format("bytes of tensor \"{}\" at offset {} of ", name, offset)));
  EXPECT_THAT(said, HasSubstr("model.safetensors are damaged"));
  EXPECT_THAT(entries(), UnorderedElementsAre("base", "good"));
}

TEST_F(HfExport, TellsOfADamagedHeaderBeforeTheNextShardIsWritten) {
  const HfWeights weights(base_, tensors_);
  const TensorSource source = source_of(weights);
  std::size_t asked_for = 0;
  const TensorSource spoiling = [&](const std::string& name, std::int64_t first, DType dtype,
                                    std::span<std::byte> target) {
    source(name, first, dtype, target);
    ++asked_for;
    for (const auto& entry : fs::directory_iterator(unfinished()))
      if (entry.path().extension() == ".safetensors") spoil(entry.path(), 20);
  };
  EXPECT_THAT(error_of<Error>([&] {
                export_hf_folder(base_, folder_ / "out", tensors_, spoiling, {.shard_bytes = 1});
              }),
              HasSubstr("bytes of the header at offset 8 of "));
  EXPECT_EQ(asked_for, 1u);
  EXPECT_THAT(entries(), ElementsAre("base"));
}

TEST_F(HfExport, AsksForATensorInPiecesOfBoundedSize) {
  const std::vector<ExpectedTensor> large{{"w", {3, 1 << 20}}};
  std::int64_t next = 0;
  const TensorSource source = [&](const std::string&, std::int64_t first, DType dtype,
                                  std::span<std::byte> target) {
    EXPECT_EQ(first, next);
    EXPECT_LE(target.size(), 4u << 20);
    next = first + std::ssize(target) / dtype_bytes(dtype);
  };
  export_hf_folder(base_, folder_ / "out", large, source, {.dtype = DType::f32});
  EXPECT_EQ(next, 3 << 20);
}

TEST_F(HfExport, TellsWhoeverWatchesHowFarItIs) {
  std::vector<std::uint64_t> done;
  std::uint64_t total = 0;
  export_to(folder_ / "out", {.watch = [&](std::uint64_t now, std::uint64_t all) {
              done.push_back(now);
              total = all;
            }});
  EXPECT_EQ(total, HfWeights(folder_ / "out", tensors_).total_bytes());
  EXPECT_EQ(done.size(), 1 + tensors_.size()) << "a tensor of this model is one piece";
  EXPECT_EQ(done.front(), 0u);
  EXPECT_EQ(done.back(), total);
}

TEST_F(HfExport, PutsATensorLargerThanAShardInItsOwnFile) {
  export_to(folder_ / "out", {.shard_bytes = 1});
  const auto index = nlohmann::json::parse(
      read_bytes(folder_ / "out" / "model.safetensors.index.json"))["weight_map"];
  EXPECT_EQ(index.size(), tensors_.size());
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "out"), fs::directory_iterator()),
            std::ssize(tensors_) + std::ssize(copied_) + 2);
}

TEST(ConfigDtype, ChangesBothSpellingsAtTheRootAlone) {
  const std::string text = R"({"a":{"dtype":"x"},"dtype" : "float16","b":["dtype","torch_dtype"],)"
                           R"("c":"dtype","d\"dtype":1,"torch_dtype":"float16","dtype2":"y"})";
  EXPECT_EQ(with_config_dtype(text, "float32"),
            R"({"a":{"dtype":"x"},"dtype" : "float32","b":["dtype","torch_dtype"],)"
            R"("c":"dtype","d\"dtype":1,"torch_dtype":"float32","dtype2":"y"})");
}

TEST(ConfigDtype, LeavesAbsentAndNullAlone) {
  for (const std::string text : {R"({"torch_dtype":null,"x":"y"})", "{}", R"({"dtype":null})"}) {
    EXPECT_EQ(with_config_dtype(text, "float32"), text);
  }
}

}  // namespace
}  // namespace strata
