// Shards written by the Python scripts and by the engine are the same to the byte. The golden files
// are made by tests/golden/data/make.py.

#include <gtest/gtest.h>

#include "strata/data/detokenizer.hpp"
#include "strata/data/text_source.hpp"
#include "strata/data/token_shard.hpp"
#include "unit/data/shard_files.hpp"

namespace strata {
namespace {

TEST(GoldenShard, IsReproducedFromItsSourceByteForByte) {
  const TextSource source =
      read_text_source(std::vector{golden_path("documents.jsonl")}, {.format = TextFormat::jsonl});
  TokenShardInfo info;
  info.vocab_size = byte_tokenizer_vocab;
  info.tokenizer = "byte";
  info.split = "train";
  info.source_hash = source.hash;
  const auto path = temporary_path("byte.tok");
  write_token_shard(path, info, source.documents);
  EXPECT_TRUE(file_bytes(path) == file_bytes(golden_path("byte.tok")));
}

TEST(GoldenShard, OfATrainedTokenizerIsReadAndReproduced) {
  const TokenShard shard(golden_path("bpe.tok"));
  EXPECT_EQ(shard.info().num_documents, 4u);
  EXPECT_TRUE(shard.info().has_mask);
  EXPECT_EQ(shard.info().tokenizer_hash, load_detokenizer(golden_path("tokenizer.json"))->hash());
  const auto path = temporary_path("bpe.tok");
  write_token_shard(path, shard.info(), documents_of(shard));
  EXPECT_TRUE(file_bytes(path) == file_bytes(golden_path("bpe.tok")));
}

TEST(GoldenShard, Of32BitsIsReadAndReproduced) {
  const TokenShard shard(golden_path("wide.tok"));
  EXPECT_EQ(shard.info().vocab_size, 100000u);
  EXPECT_EQ(shard.info().tokenizer, "wide");
  EXPECT_EQ(shard.info().tokenizer_hash, 0x1122334455667788u);
  EXPECT_EQ(shard.info().split, "heldout");
  EXPECT_EQ(shard.info().source_hash, 0x99u);
  const auto documents = documents_of(shard);
  ASSERT_EQ(documents.size(), 2u);
  EXPECT_EQ(documents[0].tokens, (std::vector<std::uint32_t>{7, 99999, 65536}));
  EXPECT_EQ(documents[1].tokens, (std::vector<std::uint32_t>{70000, 1}));
  EXPECT_EQ(documents[1].trained, (std::vector<bool>{false, true}));
  const auto path = temporary_path("wide.tok");
  write_token_shard(path, shard.info(), documents);
  EXPECT_TRUE(file_bytes(path) == file_bytes(golden_path("wide.tok")));
}

}  // namespace
}  // namespace strata
