#include <fmt/format.h>

#include "strata/core/error.hpp"
#include "strata/data/token_shard.hpp"

namespace strata {

TokenDocument byte_tokenize(std::string_view text) {
  TokenDocument document;
  document.tokens.reserve(text.size() + 1);
  for (char c : text) document.tokens.push_back(static_cast<unsigned char>(c));
  document.tokens.push_back(byte_tokenizer_end);
  return document;
}

std::string byte_detokenize(std::span<const std::uint32_t> tokens) {
  std::string text;
  text.reserve(tokens.size());
  for (std::uint32_t token : tokens) {
    if (token >= byte_tokenizer_vocab) {
      throw FormatError(
          fmt::format("token {} is none of the byte tokenizer's {}", token, byte_tokenizer_vocab));
    }
    if (token != byte_tokenizer_end) text.push_back(static_cast<char>(token));
  }
  return text;
}

}  // namespace strata
