#include "strata/data/inspect.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "data/row_permutation.hpp"
#include "data/utf8.hpp"
#include "strata/core/bytes.hpp"
#include "strata/data/token_shard.hpp"

namespace strata {
namespace {

constexpr std::string_view mask_open = "⟦", mask_close = "⟧";

std::string header_text(const TokenShard& shard) {
  const TokenShardInfo& info = shard.info();
  // Nothing comes before a document's first token that it could be learned from.
  std::uint64_t trained = 0;
  for (std::uint64_t document = 0; document < info.num_documents; ++document)
    trained +=
        shard.count_trained(shard.document_begin(document) + 1, shard.document_end(document));
  std::string text = fmt::format("{}: token shard, checksum verified\n", shard.path().string());
  const auto line = [&](std::string_view name, const std::string& value) {
    text += fmt::format("  {:<11} {}\n", name, value);
  };
  line("split", info.split);
  line("documents",
       fmt::format("{}, {:.1f} tokens on average", info.num_documents,
                   static_cast<double>(info.num_tokens) / static_cast<double>(info.num_documents)));
  line("tokens",
       fmt::format("{}, {} trained ({:.1f}%), {}", info.num_tokens, trained,
                   100.0 * static_cast<double>(trained) / static_cast<double>(info.num_tokens),
                   info.has_mask ? "masked" : "no mask"));
  line("vocabulary", fmt::format("{}", info.vocab_size));
  line("tokenizer", fmt::format("{} ({:016x})", printable(info.tokenizer), info.tokenizer_hash));
  line("source", fmt::format("{:016x}", info.source_hash));
  line("file", format_bytes(std::filesystem::file_size(shard.path())));
  return text;
}

std::vector<std::uint64_t> chosen_documents(const TokenShard& shard,
                                            const InspectOptions& options) {
  const std::uint64_t total = shard.info().num_documents;
  const RowPermutation order(total, options.seed);
  std::vector<std::uint64_t> documents;
  for (std::uint64_t i = 0; i < std::min(options.samples, total); ++i) {
    documents.push_back(order.at(0, i));
  }
  std::sort(documents.begin(), documents.end());
  return documents;
}

std::string decoded(std::span<const std::uint32_t> tokens, const Detokenizer* detokenizer) {
  if (detokenizer != nullptr) return printable(detokenizer->decode(tokens));
  std::string text;
  for (std::uint32_t token : tokens) {
    if (!text.empty()) text += ' ';
    text += std::to_string(token);
  }
  return text;
}

// Runs of trained and of masked tokens in turn.
std::string marked_text(const TokenShard& shard, std::uint64_t begin, std::uint64_t end,
                        const Detokenizer* detokenizer) {
  std::string text;
  while (begin < end) {
    const bool trained = shard.trained(begin);
    std::vector<std::uint32_t> run;
    for (; begin < end && shard.trained(begin) == trained; ++begin)
      run.push_back(shard.token(begin));
    const std::string part = decoded(run, detokenizer);
    if (detokenizer == nullptr && !text.empty()) text += ' ';
    text += trained ? part : fmt::format("{}{}{}", mask_open, part, mask_close);
  }
  return text;
}

std::string indented(std::string_view text) {
  std::string result = "  | ";
  for (char c : text) {
    result += c;
    if (c == '\n') result += "  | ";
  }
  return result + '\n';
}

std::string document_text(const TokenShard& shard, std::uint64_t document,
                          const InspectOptions& options, const Detokenizer* detokenizer) {
  const std::uint64_t begin = shard.document_begin(document), end = shard.document_end(document);
  const std::uint64_t shown_end = begin + std::min(end - begin, options.tokens_max);
  std::string text = fmt::format("\ndocument {}: {} tokens, {} trained\n", document, end - begin,
                                 shard.count_trained(begin, end));
  text += indented(marked_text(shard, begin, shown_end, detokenizer));
  if (shown_end < end) text += fmt::format("  ... {} more tokens\n", end - shown_end);
  return text;
}

std::string legend(const TokenShard& shard, const Detokenizer* detokenizer) {
  std::string text;
  if (shard.info().has_mask) {
    text += fmt::format("\nMasked spans, which are not trained, stand in {} {}.\n", mask_open,
                        mask_close);
  }
  if (detokenizer == nullptr) {
    text += "\nNo tokenizer given: tokens are shown as ids.\n";
  } else if (detokenizer->hash() != shard.info().tokenizer_hash) {
    text += fmt::format(
        "\nWARNING: the tokenizer ({:016x}) is not the one that made this shard ({:016x}).\n",
        detokenizer->hash(), shard.info().tokenizer_hash);
  }
  return text;
}

}  // namespace

std::string inspect_token_shard(const std::filesystem::path& path, const InspectOptions& options) {
  const TokenShard shard(path);
  const auto bytes = make_byte_detokenizer();
  const bool native = options.detokenizer == nullptr && shard.info().tokenizer == "byte";
  const Detokenizer* detokenizer = native ? bytes.get() : options.detokenizer;
  std::string text = header_text(shard) + legend(shard, detokenizer);
  for (std::uint64_t document : chosen_documents(shard, options)) {
    text += document_text(shard, document, options, detokenizer);
  }
  return text;
}

}  // namespace strata
