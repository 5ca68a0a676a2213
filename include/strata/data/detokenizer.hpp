#pragma once
// A Detokenizer turns token ids back into text, so that people can look at their data without
// Python. Thread contract: immutable after construction.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace strata {

class Detokenizer {
 public:
  virtual ~Detokenizer() = default;

  // The bytes the tokens stand for; they are UTF-8 only where a span begins and ends between
  // characters. Special tokens are written as they are named, ids without a token as <|id N|>.
  virtual std::string decode(std::span<const std::uint32_t> tokens) const = 0;
  // XXH3-64 of the tokenizer file, as in TokenShardInfo.
  virtual std::uint64_t hash() const = 0;
};

// XXH3-64 of a tokenizer file of whatever kind, as in TokenShardInfo. Throws SystemError.
std::uint64_t tokenizer_file_hash(const std::filesystem::path& file);

// The built-in byte tokenizer; the end of a document shows as <|end|>.
std::unique_ptr<Detokenizer> make_byte_detokenizer();

// Reads a Hugging Face tokenizer.json (or a folder that holds one) of the byte-level BPE kind.
// Throws SystemError, FormatError, or ConfigError naming the kind of tokenizer when it is another.
std::unique_ptr<Detokenizer> load_detokenizer(const std::filesystem::path& path);

}  // namespace strata
