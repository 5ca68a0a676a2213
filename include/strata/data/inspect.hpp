#pragma once
// Shows a token shard to a person: the facts of its header and some of its documents, decoded,
// masked spans marked.

#include <cstdint>
#include <filesystem>
#include <string>

#include "strata/data/detokenizer.hpp"

namespace strata {

struct InspectOptions {
  std::uint64_t samples = 3;  // documents shown, chosen by `seed`
  std::uint64_t seed = 42;
  std::uint64_t tokens_max = 400;            // of each document; the rest is counted
  const Detokenizer* detokenizer = nullptr;  // none: ids, but for shards of the byte tokenizer
};

// Text of several lines, safe for a terminal: control characters and broken UTF-8 are escaped.
// Throws as TokenShard does.
std::string inspect_token_shard(const std::filesystem::path& path,
                                const InspectOptions& options = {});

}  // namespace strata
