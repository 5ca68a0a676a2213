#include "strata/data/text_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "data/content_hash.hpp"
#include "strata/core/error.hpp"
#include "strata/core/plain_file.hpp"

namespace strata {
namespace {

using nlohmann::json;

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r\f\v") == std::string_view::npos;
}

// Calls visit(line, number from 1) for each line, without its newline, while visit returns true.
void for_each_line(std::string_view text,
                   const std::function<bool(std::string_view, std::size_t)>& visit) {
  for (std::size_t number = 1;; ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (!visit(text.substr(0, end), number) || end == text.size()) return;
    text.remove_prefix(end + 1);
  }
}

class SourceReader {
 public:
  explicit SourceReader(const TextSourceOptions& options) : options_(options) {}

  void read(const std::filesystem::path& path, std::string_view text) {
    if (options_.format == TextFormat::jsonl) {
      read_jsonl(path, text);
    } else if (options_.separator == DocumentSeparator::blank_line) {
      read_blank_line_documents(text);
    } else if (!text.empty()) {
      add(byte_tokenize(text));
    }
  }

  std::vector<TokenDocument> take() { return std::move(documents_); }

 private:
  bool full() const { return documents_.size() >= options_.documents_max; }
  void add(TokenDocument document) {
    if (!full()) documents_.push_back(std::move(document));
  }

  void read_blank_line_documents(std::string_view text) {
    std::string document;
    bool open = false;
    const auto close = [&] {
      if (open) add(byte_tokenize(document));
      document.clear();
      open = false;
    };
    for_each_line(text, [&](std::string_view line, std::size_t) {
      if (is_blank(line)) {
        close();
      } else {
        if (open) document += '\n';
        document += line;
        open = true;
      }
      return !full();
    });
    close();
  }

  void read_jsonl(const std::filesystem::path& path, std::string_view text) {
    for_each_line(text, [&](std::string_view line, std::size_t number) {
      if (!is_blank(line)) add(record_document(line, fmt::format("{}:{}", path.string(), number)));
      return !full();
    });
  }

  static TokenDocument record_document(std::string_view line, const std::string& where) {
    const json record = json::parse(line, nullptr, false);
    if (record.is_discarded()) throw FormatError(fmt::format("{}: is not JSON in UTF-8", where));
    if (!record.is_object())
      throw FormatError(fmt::format("{}: a line must be a JSON object", where));
    if (record.contains("messages")) {
      throw FormatError(fmt::format(
          "{}: chat 'messages' need a tokenizer's chat template; use scripts/prepare.py", where));
    }
    if (record.contains("prompt")) return completion_document(record, where);
    if (record.contains("text")) return byte_tokenize(text_field(record, "text", where));
    throw FormatError(fmt::format("{}: needs 'text', or 'prompt' and 'completion'", where));
  }

  static TokenDocument completion_document(const json& record, const std::string& where) {
    const std::string prompt = text_field(record, "prompt", where);
    TokenDocument document = byte_tokenize(prompt + text_field(record, "completion", where));
    document.trained.assign(document.tokens.size(), true);
    std::fill_n(document.trained.begin(), prompt.size(), false);
    return document;
  }

  static std::string text_field(const json& record, const char* key, const std::string& where) {
    const auto found = record.find(key);
    if (found == record.end() || !found->is_string()) {
      throw FormatError(fmt::format("{}: '{}' must be a string", where, key));
    }
    return found->get<std::string>();
  }

  const TextSourceOptions& options_;
  std::vector<TokenDocument> documents_;
};

}  // namespace

TextSource read_text_source(std::span<const std::filesystem::path> files,
                            const TextSourceOptions& options) {
  SourceReader reader(options);
  ContentHash hash;
  for (const auto& path : files) {
    const std::string text = read_text_file(path);
    hash.add(text.data(), text.size());
    reader.read(path, text);
  }
  return {reader.take(), hash.value()};
}

}  // namespace strata
