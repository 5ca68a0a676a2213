#include "strata/data/corpus.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "strata/core/error.hpp"

namespace strata {
namespace {

std::uint64_t document_key(std::uint64_t seed, std::uint64_t index) {
  const std::array<std::uint64_t, 2> words = {seed, index};
  return XXH3_64bits(words.data(), sizeof(words));
}

std::size_t heldout_count(std::size_t num_documents, double fraction) {
  const auto wanted =
      static_cast<std::size_t>(std::floor(static_cast<double>(num_documents) * fraction + 0.5));
  return std::clamp<std::size_t>(wanted, 1, num_documents - 1);
}

std::vector<bool> chosen(std::size_t num_documents, std::size_t count, std::uint64_t seed) {
  std::vector<std::pair<std::uint64_t, std::size_t>> keys;
  for (std::size_t i = 0; i < num_documents; ++i) keys.emplace_back(document_key(seed, i), i);
  const auto end = keys.begin() + static_cast<std::ptrdiff_t>(count);
  std::nth_element(keys.begin(), end, keys.end());
  std::vector<bool> held(num_documents);
  for (auto key = keys.begin(); key != end; ++key) held[key->second] = true;
  return held;
}

std::uint64_t trained_targets(const TokenDocument& document) {
  if (document.trained.empty()) return document.tokens.size() - 1;
  return static_cast<std::uint64_t>(
      std::count(document.trained.begin() + 1, document.trained.end(), true));
}

}  // namespace

CorpusSplit split_corpus(std::vector<TokenDocument> documents, double fraction,
                         std::uint64_t seed) {
  if (!(fraction >= 0 && fraction < 1)) {
    throw ConfigError(fmt::format("the held-out share must lie in [0, 1), not {}", fraction));
  }
  if (fraction == 0) return {std::move(documents), {}};
  if (documents.size() < 2) throw ConfigError("holding out documents needs at least two of them");
  const auto held = chosen(documents.size(), heldout_count(documents.size(), fraction), seed);
  CorpusSplit split;
  for (std::size_t i = 0; i < documents.size(); ++i) {
    (held[i] ? split.heldout : split.train).push_back(std::move(documents[i]));
  }
  return split;
}

CorpusReport report_on(std::span<const TokenDocument> documents, std::uint64_t cutoff_len) {
  CorpusReport report{.num_documents = documents.size()};
  for (const TokenDocument& document : documents) {
    const std::uint64_t targets = trained_targets(document), length = document.tokens.size();
    report.num_tokens += length;
    report.trained_tokens += targets;
    report.untrained_documents += targets == 0;
    if (length <= cutoff_len) continue;
    ++report.long_documents;
    report.cut_tokens += length - cutoff_len;
  }
  return report;
}

std::vector<std::string> warnings(const CorpusReport& report, std::uint64_t cutoff_len) {
  std::vector<std::string> lines;
  if (report.untrained_documents > 0) {
    lines.push_back(fmt::format("{} documents have no trained token", report.untrained_documents));
  }
  if (report.cut_tokens > 0) {
    lines.push_back(fmt::format(
        "{} documents are longer than {} tokens: a packed or separate layout would cut off {} "
        "tokens ({:.1f}%), windows none",
        report.long_documents, cutoff_len, report.cut_tokens,
        100.0 * static_cast<double>(report.cut_tokens) / static_cast<double>(report.num_tokens)));
  }
  return lines;
}

}  // namespace strata
