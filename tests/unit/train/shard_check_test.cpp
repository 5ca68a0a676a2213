#include "src/train/shard_check.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "sim/tiny_training.hpp"
#include "strata/checkpoint/random_model.hpp"
#include "strata/core/error.hpp"
#include "strata/data/detokenizer.hpp"
#include "strata/data/token_shard.hpp"
#include "strata/train/trainer.hpp"
#include "support/source_dir.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Shards that scripts/prepare.py made, and the tokenizer that it made some of them with.
const fs::path prepared = source_dir() / "tests/golden/data";

class ShardCheck : public ::testing::Test {
 protected:
  ShardCheck() {
    config_.model_name_or_path = folder_ / "model";
    make_random_model(config_.model_name_or_path,
                      {.config = random_model_preset("tiny"), .shape_only = true});
  }
  ~ShardCheck() override { fs::remove_all(folder_); }

  void give_tokenizer(const std::string& text) const { std::ofstream(tokenizer_) << text; }
  void give_the_prepared_tokenizer() const {
    fs::copy_file(prepared / "tokenizer.json", tokenizer_);
  }
  // A shard that claims a tokenizer.
  fs::path shard(const std::string& tokenizer, std::uint64_t hash,
                 std::uint64_t vocab = 257) const {
    const fs::path path = folder_ / (tokenizer + ".tok");
    TokenShardInfo info;
    info.vocab_size = vocab;
    info.tokenizer = tokenizer;
    info.tokenizer_hash = hash;
    write_token_shard(path, info, std::vector{byte_tokenize("a text")});
    return path;
  }
  void check(const fs::path& path) const { check_shards(config_, "dataset", {path}); }
  std::string refusal(const fs::path& path) const {
    try {
      check(path);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  }
  std::vector<std::string> warnings(const fs::path& path) const {
    return unchecked_shards(config_, {path});
  }

  const fs::path folder_ = testing::fresh_folder("shards");
  const fs::path tokenizer_ = folder_ / "model" / "tokenizer.json";
  RunConfig config_;
};

TEST_F(ShardCheck, TakesWhatWasPreparedWithTheModelsTokenizer) {
  give_the_prepared_tokenizer();
  HfConfig model = random_model_preset("tiny");
  model.vocab_size = static_cast<std::int64_t>(TokenShard(prepared / "bpe.tok").info().vocab_size);
  fs::remove(config_.model_name_or_path / "config.json");
  make_random_model(folder_ / "wide", {.config = model, .shape_only = true});
  fs::copy_file(folder_ / "wide" / "config.json", config_.model_name_or_path / "config.json");
  check(prepared / "bpe.tok");
  EXPECT_THAT(warnings(prepared / "bpe.tok"), IsEmpty());
}

TEST_F(ShardCheck, RefusesAnotherTokenizerAndNamesBoth) {
  give_tokenizer("{}");
  const fs::path path = shard("other", 0xabc);
  EXPECT_THAT(
      refusal(path),
      AllOf(HasSubstr(path.string() + " is of tokenizer 'other' (0000000000000abc)"),
            HasSubstr(
                fmt::format("{} ({:016x})", tokenizer_.string(), tokenizer_file_hash(tokenizer_))),
            HasSubstr("scripts/prepare.py --tokenizer " + config_.model_name_or_path.string()),
            HasSubstr("allow_other_tokenizer: true")));
}

TEST_F(ShardCheck, RefusesATokenizerThatChangedByOneByte) {
  give_tokenizer("{}");
  const fs::path path = shard("own", tokenizer_file_hash(tokenizer_));
  EXPECT_EQ(refusal(path), "");
  give_tokenizer("{ }");
  EXPECT_THAT(refusal(path), HasSubstr("is of tokenizer 'own'"));
}

TEST_F(ShardCheck, RefusesBytesForAModelThatHasATokenizer) {
  give_tokenizer("{}");
  EXPECT_THAT(refusal(prepared / "byte.tok"),
              AllOf(HasSubstr("byte.tok is of bytes, the built-in tokenizer"),
                    HasSubstr(tokenizer_.string())));
}

TEST_F(ShardCheck, TakesBytesForAModelThatHasNone) {
  check(prepared / "byte.tok");
  EXPECT_THAT(warnings(prepared / "byte.tok"), IsEmpty());
}

TEST_F(ShardCheck, TakesAnyWhereOthersAreAllowed) {
  give_tokenizer("{}");
  config_.allow_other_tokenizer = true;
  for (const fs::path& path : {shard("byte", 0), shard("other", 0xabc), shard("unsaid", 0)}) {
    check(path);
    EXPECT_THAT(warnings(path), IsEmpty());
  }
}

TEST_F(ShardCheck, RefusesAWiderVocabularyEvenThen) {
  config_.allow_other_tokenizer = true;
  EXPECT_THAT(refusal(shard("wide", 0, 258)), HasSubstr("a vocabulary of 258, the model in "));
}

TEST_F(ShardCheck, WarnsOfAShardThatDoesNotSayItsTokenizer) {
  give_tokenizer("{}");
  const fs::path path = shard("unsaid", 0);
  check(path);
  EXPECT_THAT(warnings(path),
              ElementsAre(AllOf(HasSubstr(path.string() + " does not say which"),
                                HasSubstr("'unsaid'"), HasSubstr(tokenizer_.string()))));
}

TEST_F(ShardCheck, WarnsOfAModelThatHasNothingToCompareWith) {
  const fs::path path = shard("other", 0xabc);
  check(path);
  EXPECT_THAT(warnings(path), ElementsAre(AllOf(HasSubstr("'other' (0000000000000abc)"),
                                                HasSubstr("there is no " + tokenizer_.string()))));
}

TEST_F(ShardCheck, LooksAtWhatTheRunReads) {
  give_tokenizer("{}");
  config_.dataset = {shard("own", tokenizer_file_hash(tokenizer_))};
  config_.eval_dataset = {shard("other", 0xabc)};
  check_data(config_);
  config_.evaluate = true;
  EXPECT_THROW(check_data(config_), ConfigError);
  EXPECT_THROW(held_out_batches(config_), ConfigError);
  config_.eval_dataset = {shard("unsaid", 0)};
  EXPECT_THAT(data_warnings(config_, Purpose::train), ElementsAre(HasSubstr("unsaid.tok")));
  config_.evaluate = false;
  EXPECT_THAT(data_warnings(config_, Purpose::train), IsEmpty());
  EXPECT_THAT(data_warnings(config_, Purpose::evaluate), ElementsAre(HasSubstr("unsaid.tok")));
}

}  // namespace
}  // namespace strata
