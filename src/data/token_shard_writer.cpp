#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "data/content_hash.hpp"
#include "data/shard_header.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"
#include "strata/core/plain_file.hpp"
#include "strata/data/token_shard.hpp"

namespace strata {
namespace {

using Documents = std::span<const TokenDocument>;

std::filesystem::path partial_path(const std::filesystem::path& path) {
  return path.string() + ".partial";
}

PlainFile create_anew(const std::filesystem::path& path) {
  std::error_code
      ignored;  // What a killed run left is of no use; create() says what is in the way.
  std::filesystem::remove(path, ignored);
  return PlainFile::create(path);
}

// A file that appears under its name only by commit(); until then it is removed on the way out.
class NewFile {
 public:
  explicit NewFile(const std::filesystem::path& path)
      : path_(path), file_(create_anew(partial_path(path))) {}
  ~NewFile() {
    std::error_code ignored;
    if (!committed_) std::filesystem::remove(file_.path(), ignored);
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void write(std::span<const char> bytes, std::uint64_t offset) {
    file_.write(offset, std::as_bytes(bytes));
  }

  void commit() {
    file_.sync_and_close();
    check(::rename(file_.path().c_str(), path_.c_str()), "rename", file_.path().string());
    committed_ = true;
    sync_directory(path_.parent_path());
  }

 private:
  std::filesystem::path path_;
  PlainFile file_;
  bool committed_ = false;
};

// Appends to the payload through a buffer, hashing as it goes.
class PayloadWriter {
 public:
  explicit PayloadWriter(NewFile& file) : file_(file) { buffer_.reserve(buffer_bytes); }

  void append(const void* data, std::size_t bytes) {
    if (buffer_.size() + bytes > buffer_bytes) flush();
    const auto* from = static_cast<const char*>(data);
    buffer_.insert(buffer_.end(), from, from + bytes);
  }

  // Pads to where the next part may start, and returns that offset.
  std::uint64_t align() {
    const std::uint64_t here = offset_ + buffer_.size();
    const std::uint64_t there = align_up(here, shard_alignment);
    buffer_.insert(buffer_.end(), there - here, '\0');
    return there;
  }

  std::uint64_t finish() {
    flush();
    return hash_.value();
  }

 private:
  static constexpr std::size_t buffer_bytes = 1 << 20;

  void flush() {
    hash_.add(buffer_.data(), buffer_.size());
    file_.write(buffer_, offset_);
    offset_ += buffer_.size();
    buffer_.clear();
  }

  NewFile& file_;
  std::vector<char> buffer_;
  std::uint64_t offset_ = shard_header_bytes;
  ContentHash hash_;
};

void check_document(const TokenDocument& document, std::size_t index, std::uint64_t vocab_size) {
  if (document.tokens.empty()) {
    throw ConfigError(fmt::format("document {} has no tokens", index));
  }
  ensure(document.trained.empty() || document.trained.size() == document.tokens.size());
  for (std::uint32_t token : document.tokens) {
    if (token < vocab_size) continue;
    throw ConfigError(fmt::format("document {} holds token {}, outside the vocabulary of {}", index,
                                  token, vocab_size));
  }
}

void check_documents(Documents documents, std::uint64_t vocab_size) {
  if (documents.empty()) throw ConfigError("a token shard needs at least one document");
  if (vocab_size == 0 || vocab_size > vocab_size_max) {
    throw ConfigError(fmt::format("vocabulary of {} is not in 1..{}", vocab_size, vocab_size_max));
  }
  for (std::size_t d = 0; d < documents.size(); ++d) check_document(documents[d], d, vocab_size);
}

template <std::size_t size>
void set_text(std::array<char, size>& field, const std::string& text, std::string_view what) {
  if (text.size() > size) {
    throw ConfigError(fmt::format("{} '{}' is longer than {} bytes", what, text, size));
  }
  std::copy(text.begin(), text.end(), field.begin());
}

ShardHeader make_header(const TokenShardInfo& info, Documents documents) {
  ShardHeader header{.magic = shard_magic, .version = shard_version};
  header.token_bytes = shard_token_bytes(info.vocab_size);
  for (const TokenDocument& document : documents) header.num_tokens += document.tokens.size();
  header.num_documents = documents.size();
  header.vocab_size = info.vocab_size;
  header.tokenizer_hash = info.tokenizer_hash;
  header.source_hash = info.source_hash;
  set_text(header.tokenizer, info.tokenizer, "tokenizer name");
  set_text(header.split, info.split, "split name");
  return header;
}

void append_tokens(PayloadWriter& payload, Documents documents, std::uint32_t token_bytes) {
  for (const TokenDocument& document : documents) {
    // Little-endian: the low half of a u32 comes first.
    for (std::uint32_t token : document.tokens) payload.append(&token, token_bytes);
  }
}

void append_starts(PayloadWriter& payload, Documents documents) {
  std::uint64_t start = 0;
  for (const TokenDocument& document : documents) {
    payload.append(&start, sizeof(start));
    start += document.tokens.size();
  }
}

bool all_trained(const TokenDocument& document) {
  return std::find(document.trained.begin(), document.trained.end(), false) ==
         document.trained.end();
}

void append_mask(PayloadWriter& payload, Documents documents, std::uint64_t num_tokens) {
  std::vector<std::uint8_t> bits(shard_mask_bytes(num_tokens));
  std::uint64_t index = 0;
  for (const TokenDocument& document : documents) {
    for (std::size_t i = 0; i < document.tokens.size(); ++i, ++index) {
      const bool trained = document.trained.empty() || document.trained[i];
      if (trained) bits[index / 8] = static_cast<std::uint8_t>(bits[index / 8] | 1u << index % 8);
    }
  }
  payload.append(bits.data(), bits.size());
}

}  // namespace

void write_token_shard(const std::filesystem::path& path, const TokenShardInfo& info,
                       std::span<const TokenDocument> documents) {
  check_documents(documents, info.vocab_size);
  ShardHeader header = make_header(info, documents);
  NewFile file(path);
  PayloadWriter payload(file);
  header.tokens_offset = payload.align();
  append_tokens(payload, documents, header.token_bytes);
  header.documents_offset = payload.align();
  append_starts(payload, documents);
  if (!std::all_of(documents.begin(), documents.end(), all_trained)) {
    header.mask_offset = payload.align();
    append_mask(payload, documents, header.num_tokens);
  }
  header.payload_hash = payload.finish();
  std::array<char, shard_header_bytes> block{};
  std::memcpy(block.data(), &header, sizeof(header));
  file.write(block, 0);
  file.commit();
}

}  // namespace strata
