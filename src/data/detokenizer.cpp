#include "strata/data/detokenizer.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "data/utf8.hpp"
#include "strata/core/error.hpp"
#include "strata/core/plain_file.hpp"
#include "strata/data/token_shard.hpp"

namespace strata {
namespace {

using nlohmann::json;

std::uint64_t hash_of(const std::string& text) { return XXH3_64bits(text.data(), text.size()); }

std::string unknown_id(std::uint32_t id) { return fmt::format("<|id {}|>", id); }

class ByteDetokenizer : public Detokenizer {
 public:
  std::string decode(std::span<const std::uint32_t> tokens) const override {
    std::string text;
    for (std::uint32_t token : tokens) text += piece(token);
    return text;
  }
  std::uint64_t hash() const override { return 0; }

 private:
  static std::string piece(std::uint32_t token) {
    if (token == byte_tokenizer_end) return "<|end|>";
    return token < byte_tokenizer_end ? std::string(1, static_cast<char>(token))
                                      : unknown_id(token);
  }
};

bool stands_for_itself(unsigned byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

// Byte-level BPE spells every byte as a printable character: those that print as themselves, the
// others from U+0100 on.
std::unordered_map<char32_t, char> byte_of_character() {
  std::unordered_map<char32_t, char> map;
  char32_t next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const char32_t character = stands_for_itself(byte) ? char32_t{byte} : next++;
    map.emplace(character, static_cast<char>(byte));
  }
  return map;
}

// Empty when the piece holds a character that stands for no byte.
std::optional<std::string> spelled_bytes(std::string_view piece) {
  static const auto bytes = byte_of_character();
  std::string text;
  while (!piece.empty()) {
    const Utf8Character next = next_character(piece);
    const auto found = bytes.find(next.value);
    if (!next.valid || found == bytes.end()) return std::nullopt;
    text.push_back(found->second);
    piece.remove_prefix(next.bytes);
  }
  return text;
}

// True when a part of the tokenizer is of the type, itself or within a sequence.
bool has_type(const json& part, std::string_view type) {
  if (!part.is_object()) return false;
  if (part.value("type", "") == type) return true;
  for (const char* list : {"decoders", "pretokenizers"}) {
    const auto found = part.find(list);
    if (found == part.end() || !found->is_array()) continue;
    for (const json& element : *found) {
      if (element.is_object() && element.value("type", "") == type) return true;
    }
  }
  return false;
}

class BpeDetokenizer : public Detokenizer {
 public:
  BpeDetokenizer(const json& tokenizer, std::uint64_t hash, std::string path)
      : hash_(hash), path_(std::move(path)) {
    check_kind(tokenizer);
    add_vocabulary(tokenizer.at("model").at("vocab"));
    if (tokenizer.contains("added_tokens")) add_special_tokens(tokenizer.at("added_tokens"));
  }

  std::string decode(std::span<const std::uint32_t> tokens) const override {
    std::string text;
    for (std::uint32_t token : tokens) {
      const auto found = pieces_.find(token);
      text += found == pieces_.end() ? unknown_id(token) : found->second;
    }
    return text;
  }
  std::uint64_t hash() const override { return hash_; }

 private:
  void check_kind(const json& tokenizer) const {
    const json& model = tokenizer.at("model");
    const std::string type = model.value("type", "");
    if (type != "BPE") {
      throw ConfigError(fmt::format(
          "{}: tokenizer model '{}' cannot be decoded here, only byte-level BPE", path_, type));
    }
    const json none;
    const auto part = [&](const char* key) -> const json& {
      return tokenizer.contains(key) ? tokenizer.at(key) : none;
    };
    if (has_type(part("decoder"), "ByteLevel") || has_type(part("pre_tokenizer"), "ByteLevel"))
      return;
    throw ConfigError(fmt::format(
        "{}: this BPE tokenizer is not byte-level, so it cannot be decoded here", path_));
  }

  void add_vocabulary(const json& vocabulary) {
    for (const auto& [piece, id] : vocabulary.items()) {
      pieces_[id.get<std::uint32_t>()] = spelled_bytes(piece).value_or(piece);
    }
  }

  // Special tokens are literal text, also when they are in the vocabulary.
  void add_special_tokens(const json& tokens) {
    for (const json& token : tokens) {
      pieces_[token.at("id").get<std::uint32_t>()] = token.at("content").get<std::string>();
    }
  }

  std::uint64_t hash_;
  std::string path_;
  std::unordered_map<std::uint32_t, std::string> pieces_;
};

}  // namespace

std::uint64_t tokenizer_file_hash(const std::filesystem::path& file) {
  return hash_of(read_text_file(file));
}

std::unique_ptr<Detokenizer> make_byte_detokenizer() { return std::make_unique<ByteDetokenizer>(); }

std::unique_ptr<Detokenizer> load_detokenizer(const std::filesystem::path& path) {
  const auto file = std::filesystem::is_directory(path) ? path / "tokenizer.json" : path;
  const std::string text = read_text_file(file);
  try {
    return std::make_unique<BpeDetokenizer>(json::parse(text), hash_of(text), file.string());
  } catch (const json::exception& error) {
    throw FormatError(fmt::format("{}: is no tokenizer.json: {}", file.string(), error.what()));
  }
}

}  // namespace strata
