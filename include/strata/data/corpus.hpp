#pragma once
// A corpus is the documents of a data set before they become shards: splitting them, and what to
// tell their owner.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "strata/data/token_shard.hpp"

namespace strata {

struct CorpusSplit {
  std::vector<TokenDocument> train, heldout;
};

// Holds out `fraction` (in [0, 1)) of the documents, at least one when it is not 0: those whose
// index hashes lowest with the seed, in their order. The same choice as scripts/prepare.py makes.
// Throws ConfigError.
CorpusSplit split_corpus(std::vector<TokenDocument> documents, double fraction, std::uint64_t seed);

struct CorpusReport {
  std::uint64_t num_documents = 0, num_tokens = 0;
  std::uint64_t trained_tokens = 0;       // as targets: a document's first token is none
  std::uint64_t untrained_documents = 0;  // without a single trained target
  std::uint64_t long_documents = 0;       // longer than cutoff_len
  std::uint64_t cut_tokens = 0;           // what packed and separate rows would lose of them
};
CorpusReport report_on(std::span<const TokenDocument> documents, std::uint64_t cutoff_len);

// One sentence for each thing the owner should look at.
std::vector<std::string> warnings(const CorpusReport& report, std::uint64_t cutoff_len);

}  // namespace strata
