#pragma once
// ShardHeader is the first bytes of a token shard, as they lie in the file
// (strata/data/token_shard.hpp). A value.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "strata/data/token_shard.hpp"

namespace strata {

static_assert(std::endian::native == std::endian::little, "token shards are mapped as they lie");

struct ShardHeader {
  std::array<char, 8> magic{};
  std::uint32_t version = 0, token_bytes = 0;
  std::uint64_t num_tokens = 0, num_documents = 0, vocab_size = 0;
  std::uint64_t tokens_offset = 0, documents_offset = 0, mask_offset = 0;
  std::uint64_t payload_hash = 0, tokenizer_hash = 0;
  std::array<char, 64> tokenizer{};
  std::array<char, 32> split{};
  std::uint64_t source_hash = 0;
};
static_assert(sizeof(ShardHeader) == 184);

inline constexpr std::uint64_t shard_header_bytes = 4096;
inline constexpr std::uint64_t shard_alignment = 64;
inline constexpr std::array<char, 8> shard_magic = {'S', 'T', 'R', 'A', 'T', 'O', 'K', '1'};
inline constexpr std::uint32_t shard_version = 1;
inline constexpr std::uint64_t vocab_size_max = 0x7fffffff;  // A label is a signed 32-bit number.

constexpr std::uint32_t shard_token_bytes(std::uint64_t vocab_size) {
  return vocab_size <= 65536 ? 2 : 4;
}
constexpr std::uint64_t shard_mask_bytes(std::uint64_t num_tokens) { return (num_tokens + 7) / 8; }

// Throws FormatError naming the file and the first rule broken: magic, counts, offsets, file size,
// names.
ShardHeader read_shard_header(std::span<const std::byte> file, const std::string& path);

TokenShardInfo shard_info(const ShardHeader& header);

}  // namespace strata
