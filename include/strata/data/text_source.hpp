#pragma once
// Text sources: documents read from text and JSONL files and tokenized by bytes. scripts/prepare.py
// reads the same files the same way for Hugging Face tokenizers.

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "strata/data/token_shard.hpp"

namespace strata {

enum class TextFormat : std::uint8_t {
  text,
  jsonl,  // a line: {"text"}, or {"prompt", "completion"}, where the prompt is not trained
};
enum class DocumentSeparator : std::uint8_t {
  blank_line,  // one or more lines of nothing but white space
  file,        // one file is one document
};

struct TextSourceOptions {
  TextFormat format = TextFormat::text;
  DocumentSeparator separator = DocumentSeparator::blank_line;  // of text files
  std::uint64_t documents_max = ~std::uint64_t{0};
};

struct TextSource {
  std::vector<TokenDocument> documents;
  std::uint64_t hash = 0;  // XXH3-64 of all the files' bytes, in order
};

// Throws SystemError, or FormatError with file and line. Chat `messages` are refused by name: they
// need a template.
TextSource read_text_source(std::span<const std::filesystem::path> files,
                            const TextSourceOptions& options = {});

}  // namespace strata
