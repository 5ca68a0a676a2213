#include "train/shard_check.hpp"

#include <fmt/format.h>

#include <optional>

#include "strata/checkpoint/hf_folder.hpp"
#include "strata/core/error.hpp"
#include "strata/data/detokenizer.hpp"
#include "strata/data/token_shard.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;

// What a shard's header says of its tokenizer. Built-in ones have no file, and so no hash.
bool is_of_bytes(const TokenShardInfo& shard) {
  return shard.tokenizer == "byte" && shard.tokenizer_hash == 0;
}
bool says_its_tokenizer(const TokenShardInfo& shard) {
  return is_of_bytes(shard) || shard.tokenizer_hash != 0;
}
std::string tokenizer_text(const TokenShardInfo& shard) {
  if (is_of_bytes(shard)) return "bytes, the built-in tokenizer of `strata prepare`";
  return fmt::format("tokenizer '{}' ({:016x})", shard.tokenizer, shard.tokenizer_hash);
}

fs::path tokenizer_of(const RunConfig& config) {
  return config.model_name_or_path / "tokenizer.json";
}
std::optional<std::uint64_t> tokenizer_hash_of(const RunConfig& config) {
  const fs::path file = tokenizer_of(config);
  if (!fs::exists(file)) return {};
  return tokenizer_file_hash(file);
}

void check_vocabulary(const RunConfig& config, const fs::path& path, const TokenShardInfo& shard,
                      const HfConfig& model) {
  if (shard.vocab_size <= static_cast<std::uint64_t>(model.vocab_size)) return;
  throw ConfigError(fmt::format(
      "{} was tokenised with a vocabulary of {}, the model in {} has {}: use the model's own "
      "tokenizer",
      path.string(), shard.vocab_size, config.model_name_or_path.string(), model.vocab_size));
}

void check_tokenizer(const RunConfig& config, const fs::path& path, const TokenShardInfo& shard,
                     std::uint64_t model_hash) {
  if (!says_its_tokenizer(shard) || shard.tokenizer_hash == model_hash) return;
  throw ConfigError(fmt::format(
      "{} is of {}, but the model's tokenizer is {} ({:016x}): to the model its tokens mean other "
      "text. Make it anew with `scripts/prepare.py --tokenizer {} --input TEXT --output FOLDER`, "
      "or, if they are meant to be these, set allow_other_tokenizer: true",
      path.string(), tokenizer_text(shard), tokenizer_of(config).string(), model_hash,
      config.model_name_or_path.string()));
}

TokenShardInfo info_of(const fs::path& path) {
  return TokenShard(path, TokenShardCheck::header).info();
}

}  // namespace

void check_shards(const RunConfig& config, const std::string& key,
                  const std::vector<fs::path>& paths) {
  if (paths.empty())
    throw ConfigError(key + " names no token shard: make one with `strata prepare`");
  const std::optional<std::uint64_t> hash = tokenizer_hash_of(config);
  std::optional<HfConfig> model;  // looked at when there is a shard to hold against it
  for (const fs::path& path : paths) {
    if (!fs::is_regular_file(path))
      throw ConfigError(
          fmt::format("{}: {} is no file: make it with `strata prepare`", key, path.string()));
    const TokenShardInfo shard = info_of(path);
    if (!model) model = read_hf_config(config.model_name_or_path);
    check_vocabulary(config, path, shard, *model);
    if (hash && !config.allow_other_tokenizer) check_tokenizer(config, path, shard, *hash);
  }
}

std::vector<std::string> unchecked_shards(const RunConfig& config,
                                          const std::vector<fs::path>& paths) {
  std::vector<std::string> warnings;
  if (config.allow_other_tokenizer) return warnings;
  const bool has_tokenizer = fs::exists(tokenizer_of(config));
  for (const fs::path& path : paths) {
    const TokenShardInfo shard = info_of(path);
    if (has_tokenizer && !says_its_tokenizer(shard))
      warnings.push_back(fmt::format(
          "{} does not say which file its tokenizer '{}' is, so nobody knows whether it is {}",
          path.string(), shard.tokenizer, tokenizer_of(config).string()));
    if (!has_tokenizer && shard.tokenizer_hash != 0)
      warnings.push_back(
          fmt::format("{} is of {}, and nobody knows whether that is the model's: there is no {}",
                      path.string(), tokenizer_text(shard), tokenizer_of(config).string()));
  }
  return warnings;
}

}  // namespace strata
