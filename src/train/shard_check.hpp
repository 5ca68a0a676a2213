#pragma once
// Whether token shards are of the tokenizer and the vocabulary of a run's model, known from their
// headers. Ids of another tokenizer train without an error, and teach the model nothing it can say.
//
// Thread contract: all from any thread.

#include <filesystem>
#include <string>
#include <vector>

#include "strata/train/run_config.hpp"

namespace strata {

// Shards of a key of the config. Throws ConfigError.
void check_shards(const RunConfig& config, const std::string& key,
                  const std::vector<std::filesystem::path>& paths);

// A sentence on each shard whose tokenizer cannot be compared with the model's: the shard does not
// say which it is, or the model has no tokenizer.json.
std::vector<std::string> unchecked_shards(const RunConfig& config,
                                          const std::vector<std::filesystem::path>& paths);

}  // namespace strata
