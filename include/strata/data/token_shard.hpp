#pragma once
// Token shards: a binary file of token ids with document bounds and a loss mask, checksummed,
// memory-mapped for reading.
//
// Layout, little-endian: a 4096-byte header, then tokens (u16 when vocab_size <= 65536, else u32),
// document starts (u64 each, first is 0), mask bits (bit i%8 of byte i/8: token i is trained as a
// target), each part starting at a multiple of
// 64. Header, at byte 0: "STRATOK1"; u32 version 1; u32 token bytes; u64 num_tokens; u64
// num_documents; u64 vocab_size; u64 offset of tokens, documents, mask (0: all trained); u64
// XXH3-64 of everything after the header; u64 XXH3-64 of the tokenizer file (0: built-in byte
// tokenizer); char[64] tokenizer name; char[32] split; u64 XXH3-64 of the source file. Files from
// outside are hostile until checked: every offset, count and token id. Thread contract: a
// TokenShard is immutable; any thread may read it.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace strata {

struct TokenShardInfo {
  std::uint64_t num_tokens = 0, num_documents = 0, vocab_size = 0;
  std::uint64_t tokenizer_hash = 0, source_hash = 0;
  std::string tokenizer;  // "byte", or the tokenizer's name
  std::string split;      // "train", "heldout"
  bool has_mask = false;
};

enum class TokenShardCheck : std::uint8_t { header, checksum };

class TokenShard {
 public:
  // Throws FormatError or SystemError.
  explicit TokenShard(const std::filesystem::path& path,
                      TokenShardCheck verify = TokenShardCheck::checksum);
  ~TokenShard();
  TokenShard(TokenShard&&) noexcept;

  const TokenShardInfo& info() const;
  const std::filesystem::path& path() const;
  std::uint32_t token(std::uint64_t index) const;
  bool trained(std::uint64_t index) const;
  std::uint64_t count_trained(std::uint64_t begin, std::uint64_t end) const;  // among [begin, end)
  // Bounds of document d: [first, last).
  std::uint64_t document_begin(std::uint64_t document) const;
  std::uint64_t document_end(std::uint64_t document) const;

 private:
  struct Mapping;
  std::unique_ptr<Mapping> mapping_;
};

// Writes a shard under a temporary name and renames it when complete and synced. Counts and mask
// come from the documents; of `info` only the vocabulary, hashes and names are used. Throws
// ConfigError for no documents, an empty document or a token outside the vocabulary.
struct TokenDocument {
  std::vector<std::uint32_t> tokens;
  std::vector<bool> trained;  // empty: all
};
void write_token_shard(const std::filesystem::path& path, const TokenShardInfo& info,
                       std::span<const TokenDocument> documents);

// The built-in tokenizer: bytes are ids 0..255, 256 ends a document (byte_tokenize appends it,
// byte_detokenize drops it). Needs no files.
inline constexpr std::uint32_t byte_tokenizer_vocab = 257;
inline constexpr std::uint32_t byte_tokenizer_end = 256;
TokenDocument byte_tokenize(std::string_view text);
std::string byte_detokenize(std::span<const std::uint32_t> tokens);

}  // namespace strata
