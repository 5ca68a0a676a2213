#include "data/shard_header.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "strata/core/error.hpp"

namespace strata {
namespace {

template <std::size_t size>
std::string text_of(const std::array<char, size>& field) {
  return {field.begin(), std::find(field.begin(), field.end(), '\0')};
}

// Checks one header against the size of its file.
class HeaderCheck {
 public:
  HeaderCheck(const ShardHeader& header, std::uint64_t file_bytes, const std::string& path)
      : header_(header), file_bytes_(file_bytes), path_(path) {}

  void run() const {
    check_kind();
    check_counts();
    check_parts();
    check_name("tokenizer name", text_of(header_.tokenizer));
    check_name("split name", text_of(header_.split));
  }

 private:
  [[noreturn]] void fail(std::string_view rule) const {
    throw FormatError(fmt::format("{}: {}", path_, rule));
  }

  void check_kind() const {
    if (header_.magic != shard_magic) fail("is no token shard (it does not begin with STRATOK1)");
    if (header_.version != shard_version) {
      fail(fmt::format("is a token shard of version {}, only {} is known", header_.version,
                       shard_version));
    }
  }

  void check_counts() const {
    if (header_.vocab_size == 0 || header_.vocab_size > vocab_size_max) {
      fail(fmt::format("vocabulary of {} is not in 1..{}", header_.vocab_size, vocab_size_max));
    }
    if (header_.token_bytes != shard_token_bytes(header_.vocab_size)) {
      fail(fmt::format("{} bytes a token do not go with a vocabulary of {}", header_.token_bytes,
                       header_.vocab_size));
    }
    if (header_.num_documents == 0 || header_.num_documents > header_.num_tokens) {
      fail(fmt::format("{} documents in {} tokens cannot be", header_.num_documents,
                       header_.num_tokens));
    }
    // Keeps the products below from overflowing.
    if (header_.num_tokens > file_bytes_) fail_size(header_.num_tokens, "tokens");
  }

  [[noreturn]] void fail_size(std::uint64_t count, std::string_view what) const {
    fail(fmt::format("says it holds {} {}, but the file has only {} bytes: truncated?", count, what,
                     file_bytes_));
  }

  // Returns the end of the part.
  std::uint64_t check_part(std::string_view what, std::uint64_t offset, std::uint64_t bytes,
                           std::uint64_t offset_min) const {
    if (offset % shard_alignment != 0) {
      fail(fmt::format("{} at offset {}, which is no multiple of {}", what, offset,
                       shard_alignment));
    }
    if (offset < offset_min) {
      fail(fmt::format("{} at offset {} overlap what ends at {}", what, offset, offset_min));
    }
    if (offset > file_bytes_ || bytes > file_bytes_ - offset) {
      fail(fmt::format("{} need {} bytes at offset {}, the file has {}: truncated?", what, bytes,
                       offset, file_bytes_));
    }
    return offset + bytes;
  }

  void check_parts() const {
    const auto& h = header_;
    auto end =
        check_part("tokens", h.tokens_offset, h.num_tokens * h.token_bytes, shard_header_bytes);
    end = check_part("document starts", h.documents_offset, h.num_documents * 8, end);
    if (h.mask_offset != 0) {
      end = check_part("mask bits", h.mask_offset, shard_mask_bytes(h.num_tokens), end);
    }
    if (end != file_bytes_) {
      fail(fmt::format("has {} bytes where its header accounts for {}", file_bytes_, end));
    }
  }

  // Names reach the terminal.
  void check_name(std::string_view what, const std::string& name) const {
    const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 32 || c == 127; };
    if (std::any_of(name.begin(), name.end(), is_control)) {
      fail(fmt::format("{} holds control characters", what));
    }
  }

  const ShardHeader& header_;
  std::uint64_t file_bytes_;
  const std::string& path_;
};

}  // namespace

ShardHeader read_shard_header(std::span<const std::byte> file, const std::string& path) {
  if (file.size() < shard_header_bytes) {
    throw FormatError(fmt::format("{}: has {} bytes, a token shard's header alone has {}", path,
                                  file.size(), shard_header_bytes));
  }
  ShardHeader header;
  std::memcpy(&header, file.data(), sizeof(header));
  HeaderCheck(header, file.size(), path).run();
  return header;
}

TokenShardInfo shard_info(const ShardHeader& header) {
  return {.num_tokens = header.num_tokens,
          .num_documents = header.num_documents,
          .vocab_size = header.vocab_size,
          .tokenizer_hash = header.tokenizer_hash,
          .source_hash = header.source_hash,
          .tokenizer = text_of(header.tokenizer),
          .split = text_of(header.split),
          .has_mask = header.mask_offset != 0};
}

}  // namespace strata
