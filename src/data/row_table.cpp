#include "data/row_table.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "data/first_fit.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

// Trained tokens among [begin, end), none of which begins a document: those are nobody's targets.
std::uint32_t count_targets(const TokenShard& shard, std::uint64_t begin, std::uint64_t end) {
  return static_cast<std::uint32_t>(shard.count_trained(begin, end));
}

// Labels of one window of the stream. A document that goes on behind it keeps its last label.
std::uint32_t count_window(const TokenShard& shard, std::uint64_t& document, std::uint64_t begin,
                           std::uint64_t end) {
  std::uint32_t count = 0;
  while (begin < end) {
    const std::uint64_t document_end = shard.document_end(document);
    count += count_targets(shard, begin + 1, std::min(end + 1, document_end));
    begin = std::min(end, document_end);
    if (begin == document_end) ++document;
  }
  return count;
}

}  // namespace

RowTable::RowTable(std::span<const TokenShard> shards, RowLayout layout,
                   std::int64_t sequence_length)
    : sequence_length_(static_cast<std::uint64_t>(sequence_length)) {
  if (layout == RowLayout::windows) {
    add_windows(shards);
  } else {
    add_documents(shards);
  }
  if (layout == RowLayout::packed) {
    place_first_fit();
  } else {
    place_one_per_row();
  }
}

std::span<const RowSegment> RowTable::row(std::int64_t index) const {
  ensure(index >= 0 && index < num_rows());
  const auto r = static_cast<std::size_t>(index);
  return std::span(segments_).subspan(first_[r], first_[r + 1] - first_[r]);
}

std::int64_t RowTable::trained_tokens(std::int64_t index) const {
  std::int64_t count = 0;
  for (const RowSegment& segment : row(index)) count += segment.trained;
  return count;
}

void RowTable::add_segment(const RowSegment& segment) {
  segments_.push_back(segment);
  trained_tokens_ += segment.trained;
}

void RowTable::add_windows(std::span<const TokenShard> shards) {
  for (std::uint32_t s = 0; s < shards.size(); ++s) {
    const TokenShardInfo& info = shards[s].info();
    std::uint64_t document = 0;
    for (std::uint64_t begin = 0; begin < info.num_tokens; begin += sequence_length_) {
      const std::uint64_t end = std::min(begin + sequence_length_, info.num_tokens);
      add_segment({s, count_window(shards[s], document, begin, end), begin, end});
    }
  }
}

void RowTable::add_documents(std::span<const TokenShard> shards) {
  for (std::uint32_t s = 0; s < shards.size(); ++s) {
    for (std::uint64_t d = 0; d < shards[s].info().num_documents; ++d) {
      const std::uint64_t begin = shards[s].document_begin(d);
      const std::uint64_t end = std::min(shards[s].document_end(d), begin + sequence_length_);
      add_segment({s, count_targets(shards[s], begin + 1, end), begin, end});
    }
  }
}

void RowTable::place_one_per_row() {
  first_.resize(segments_.size() + 1);
  std::iota(first_.begin(), first_.end(), 0);
}

void RowTable::place_first_fit() {
  FirstFit fit(sequence_length_);
  std::vector<std::uint64_t> rows;
  for (const RowSegment& segment : segments_)
    rows.push_back(fit.place(segment.end - segment.begin));

  first_.assign(fit.num_bins() + 1, 0);
  for (std::uint64_t row : rows) ++first_[row + 1];
  std::partial_sum(first_.begin(), first_.end(), first_.begin());

  std::vector<RowSegment> sorted(segments_.size());
  std::vector<std::uint64_t> next(first_.begin(), first_.end() - 1);
  for (std::size_t i = 0; i < rows.size(); ++i) sorted[next[rows[i]]++] = segments_[i];
  segments_ = std::move(sorted);
}

}  // namespace strata
