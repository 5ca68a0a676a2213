#include "train/run_note.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include "strata/core/error.hpp"
#include "strata/data/token_shard.hpp"

namespace strata {
namespace {

void refuse(const std::string& what) { throw ConfigError("resume_from_checkpoint: " + what); }

std::string fingerprint_of(const RunConfig& config,
                           const std::vector<std::filesystem::path>& shards) {
  std::string text =
      fmt::format("rows of {}, layout {}", config.cutoff_len, static_cast<int>(config.layout));
  for (const auto& path : shards) {
    const TokenShardInfo info = TokenShard(path, TokenShardCheck::header).info();
    text += fmt::format("; {} tokens in {} documents, source {:016x}, tokenizer {:016x}",
                        info.num_tokens, info.num_documents, info.source_hash, info.tokenizer_hash);
  }
  return text;
}

void check_same_data(const RunConfig& config, const RunNote& note) {
  const std::string own = data_fingerprint(config);
  if (own != note.data_fingerprint)
    refuse(fmt::format(
        "the data is not the checkpoint's: dataset, cutoff_len and packing make '{}', its own were "
        "'{}'. Set them as they were, or start from its exported weights",
        own, note.data_fingerprint));
  const std::uint64_t data_seed = config.data_seed.value_or(config.seed);
  if (data_seed != note.data_seed || config.seed != note.seed)
    refuse(fmt::format("seed is {} and data_seed {}, the checkpoint's run had {} and {}",
                       config.seed, data_seed, note.seed, note.data_seed));
}

}  // namespace

std::string data_fingerprint(const RunConfig& config) {
  return fingerprint_of(config, config.dataset);
}

std::string held_out_fingerprint(const RunConfig& config) {
  return fingerprint_of(config, config.eval_dataset);
}

std::string model_fingerprint(const PlannedRun& run) {
  std::string tensors;
  for (const ExpectedTensor& tensor : expected_tensors(*run.model)) {
    tensors += tensor.name;
    for (const std::int64_t size : tensor.shape) tensors += fmt::format(" {}", size);
    tensors += '\n';
  }
  return fmt::format("{} parameters, tensors {:016x}", run.model->num_parameters(),
                     XXH3_64bits(tensors.data(), tensors.size()));
}

RunNote run_facts_of(const RunConfig& config, const PlannedRun& run) {
  RunNote note;
  note.rows_per_micro_batch = config.per_device_train_batch_size;
  note.sequence_length = config.cutoff_len;
  note.data_seed = config.data_seed.value_or(config.seed);
  note.seed = config.seed;
  note.data_fingerprint = data_fingerprint(config);
  note.model_fingerprint = model_fingerprint(run);
  for (const RunConfig::Origin& key : config.resolved)
    note.config += fmt::format("{}: {}\n", key.key, key.value);
  return note;
}

void check_same_model(const PlannedRun& run, const RunNote& note) {
  const std::string own = model_fingerprint(run);
  if (own != note.model_fingerprint)
    refuse(fmt::format("the model ({}) is not the checkpoint's ({})", own, note.model_fingerprint));
}

std::int64_t resume_index(const RunConfig& config, const RunNote& note, const Batches& batches) {
  check_same_data(config, note);
  const std::int64_t rows = note.micro_batches_seen * note.rows_per_micro_batch;
  const std::int64_t own = config.per_device_train_batch_size;
  // The last micro-batch of an epoch is filled up with empty rows, as many as its size asks for.
  if (own != note.rows_per_micro_batch && rows > batches.num_rows())
    refuse(fmt::format(
        "per_device_train_batch_size is {}, the checkpoint's run had {}: it can change within the "
        "first epoch alone",
        own, note.rows_per_micro_batch));
  const std::int64_t turn = own * config.world;
  if (rows % turn != 0)
    refuse(
        fmt::format("its run had seen {} rows, which is no multiple of per_device_train_batch_size "
                    "x ranks = {}: choose these two so that their product divides it, or name "
                    "another checkpoint",
                    rows, turn));
  return rows / turn;
}

}  // namespace strata
