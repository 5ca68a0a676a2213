#include "strata/data/token_shard.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include "data/mapped_file.hpp"
#include "data/shard_header.hpp"
#include "strata/core/error.hpp"

namespace strata {

struct TokenShard::Mapping {
  Mapping(const std::filesystem::path& file_path, TokenShardCheck verify)
      : path(file_path), file(file_path), header(read_shard_header(file.bytes(), path.string())) {
    locate_parts();
    if (verify == TokenShardCheck::checksum) check_payload_hash();
    check_documents();
    if (verify == TokenShardCheck::checksum) check_tokens();
  }

  void locate_parts() {
    const std::byte* base = file.bytes().data();
    tokens = base + header.tokens_offset;
    // The mapping starts on a page and offsets are multiples of 64, so these are aligned.
    documents = reinterpret_cast<const std::uint64_t*>(base + header.documents_offset);
    if (header.mask_offset != 0) mask = base + header.mask_offset;
    info = shard_info(header);
  }

  void check_payload_hash() const {
    const auto payload = file.bytes().subspan(shard_header_bytes);
    const std::uint64_t found = XXH3_64bits(payload.data(), payload.size());
    if (found == header.payload_hash) return;
    throw FormatError(
        fmt::format("{}: checksum is {:016x}, the header says {:016x}: the file is damaged",
                    path.string(), found, header.payload_hash));
  }

  void check_documents() const {
    if (documents[0] != 0) fail_document(0, "must start at token 0");
    for (std::uint64_t d = 1; d < header.num_documents; ++d) {
      if (documents[d] <= documents[d - 1]) fail_document(d, "does not start after the one before");
    }
    if (documents[header.num_documents - 1] >= header.num_tokens) {
      fail_document(header.num_documents - 1, "starts past the last token");
    }
  }

  [[noreturn]] void fail_document(std::uint64_t document, std::string_view rule) const {
    throw FormatError(fmt::format("{}: document {} (at token {}) {}", path.string(), document,
                                  documents[document], rule));
  }

  void check_tokens() const {
    for (std::uint64_t i = 0; i < header.num_tokens; ++i) token(i);
  }

  std::uint32_t stored_token(std::uint64_t index) const {
    return header.token_bytes == 2 ? reinterpret_cast<const std::uint16_t*>(tokens)[index]
                                   : reinterpret_cast<const std::uint32_t*>(tokens)[index];
  }

  // Checked at every read: the scan at opening is optional, and the model trusts what it gets.
  std::uint32_t token(std::uint64_t index) const {
    const std::uint32_t id = stored_token(index);
    if (id >= header.vocab_size) [[unlikely]]
      fail_token(index, id);
    return id;
  }

  [[noreturn]] void fail_token(std::uint64_t index, std::uint32_t id) const {
    throw FormatError(fmt::format("{}: token {} is {}, outside the vocabulary of {}", path.string(),
                                  index, id, header.vocab_size));
  }

  // Constant after construction.
  std::filesystem::path path;
  MappedFile file;
  ShardHeader header;
  TokenShardInfo info;
  // Into the mapping.
  const std::byte* tokens = nullptr;
  const std::uint64_t* documents = nullptr;
  const std::byte* mask = nullptr;
};

TokenShard::TokenShard(const std::filesystem::path& path, TokenShardCheck verify)
    : mapping_(std::make_unique<Mapping>(path, verify)) {}
TokenShard::~TokenShard() = default;
TokenShard::TokenShard(TokenShard&&) noexcept = default;

const TokenShardInfo& TokenShard::info() const { return mapping_->info; }
const std::filesystem::path& TokenShard::path() const { return mapping_->path; }

std::uint32_t TokenShard::token(std::uint64_t index) const {
  ensure(index < mapping_->header.num_tokens);
  return mapping_->token(index);
}

bool TokenShard::trained(std::uint64_t index) const {
  ensure(index < mapping_->header.num_tokens);
  if (mapping_->mask == nullptr) return true;
  return ((mapping_->mask[index / 8] >> (index % 8)) & std::byte{1}) != std::byte{0};
}
std::uint64_t TokenShard::count_trained(std::uint64_t begin, std::uint64_t end) const {
  if (!info().has_mask) return end - begin;
  std::uint64_t count = 0;
  for (std::uint64_t i = begin; i < end; ++i) count += trained(i);
  return count;
}

std::uint64_t TokenShard::document_begin(std::uint64_t document) const {
  ensure(document < mapping_->header.num_documents);
  return mapping_->documents[document];
}

std::uint64_t TokenShard::document_end(std::uint64_t document) const {
  ensure(document < mapping_->header.num_documents);
  return document + 1 < mapping_->header.num_documents ? mapping_->documents[document + 1]
                                                       : mapping_->header.num_tokens;
}

}  // namespace strata
