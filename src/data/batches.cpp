#include "strata/data/batches.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "data/row_permutation.hpp"
#include "data/row_table.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

void check_agreement(std::span<const TokenShard> shards) {
  if (shards.empty()) throw ConfigError("a data set needs at least one token shard");
  const TokenShardInfo& first = shards[0].info();
  for (const TokenShard& shard : shards) {
    const TokenShardInfo& info = shard.info();
    if (info.tokenizer_hash == first.tokenizer_hash && info.vocab_size == first.vocab_size)
      continue;
    throw ConfigError(fmt::format(
        "token shards disagree: {} is of tokenizer '{}' ({:016x}, vocabulary {}), {} of '{}' "
        "({:016x}, vocabulary {}); "
        "prepare them with one tokenizer",
        shards[0].path().string(), first.tokenizer, first.tokenizer_hash, first.vocab_size,
        shard.path().string(), info.tokenizer, info.tokenizer_hash, info.vocab_size));
  }
}

void check_options(const BatchOptions& options) {
  if (options.sequence_length <= 0 || options.rows_per_micro_batch <= 0) {
    throw ConfigError(fmt::format("a micro-batch of {} rows of {} tokens is empty",
                                  options.rows_per_micro_batch, options.sequence_length));
  }
  // Document starts are indices into the micro-batch, of 32 bits.
  const std::int64_t tokens_max = std::numeric_limits<std::int32_t>::max();
  if (options.sequence_length > tokens_max / options.rows_per_micro_batch) {
    throw ConfigError(fmt::format("a micro-batch of {} rows of {} tokens is larger than {} tokens",
                                  options.rows_per_micro_batch, options.sequence_length,
                                  tokens_max));
  }
  ensure(options.world > 0 && options.rank >= 0 && options.rank < options.world);
}

// The document that holds token `index`.
std::uint64_t document_of(const TokenShard& shard, std::uint64_t index) {
  std::uint64_t low = 0, high = shard.info().num_documents;
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    (shard.document_begin(middle) <= index ? low : high) = middle;
  }
  return low;
}

// Part of one document within a row. Labels reach up to label_end.
struct Piece {
  std::uint64_t begin = 0, end = 0, label_end = 0;
};

// The three vectors of a micro-batch, written front to back.
class MicroBatchWriter {
 public:
  explicit MicroBatchWriter(std::span<std::int32_t> target) {
    const std::size_t part = target.size() / 3;
    tokens_ = target.subspan(0, part);
    labels_ = target.subspan(part, part);
    starts_ = target.subspan(2 * part, part);
  }

  void add(const TokenShard& shard, const Piece& piece) {
    const auto start = static_cast<std::int32_t>(next_);
    for (std::uint64_t i = piece.begin; i < piece.end; ++i) {
      const bool labelled = i + 1 < piece.label_end && shard.trained(i + 1);
      num_trained_ += labelled;
      put(static_cast<std::int32_t>(shard.token(i)),
          labelled ? static_cast<std::int32_t>(shard.token(i + 1)) : -1, start);
    }
  }

  void pad_to(std::size_t end) {
    while (next_ < end) put(0, -1, static_cast<std::int32_t>(next_));
  }

  std::int64_t num_trained() const { return num_trained_; }

 private:
  void put(std::int32_t token, std::int32_t label, std::int32_t start) {
    tokens_[next_] = token;
    labels_[next_] = label;
    starts_[next_] = start;
    ++next_;
  }

  std::span<std::int32_t> tokens_, labels_, starts_;
  std::size_t next_ = 0;
  std::int64_t num_trained_ = 0;
};

}  // namespace

struct Batches::Impl {
  Impl(std::vector<TokenShard> token_shards, const BatchOptions& batch_options)
      : shards(std::move(token_shards)),
        options(checked(shards, batch_options)),
        rows(shards, options.layout, options.sequence_length),
        permutation(static_cast<std::uint64_t>(rows.num_rows()), options.seed) {
    if (rows.trained_tokens() > 0) return;
    throw ConfigError(
        fmt::format("{} ({} shards) holds no trained token in rows of {} tokens: is every token "
                    "masked, or every document one token?",
                    shards[0].path().string(), shards.size(), options.sequence_length));
  }

  static const BatchOptions& checked(std::span<const TokenShard> shards,
                                     const BatchOptions& options) {
    check_agreement(shards);
    check_options(options);
    return options;
  }

  std::int64_t micro_batches_per_epoch() const {
    return ceil_div(rows.num_rows(), options.rows_per_micro_batch);
  }

  // Ranks take turns, so that N ranks see in one micro-batch what one rank sees in N.
  std::int64_t turn_of(std::int64_t index, int rank) const { return index * options.world + rank; }

  // The row in place `slot` of the micro-batch whose turn it is; none where an epoch, or the one
  // pass, has run out of rows.
  std::optional<std::int64_t> row_at(std::int64_t turn, std::int64_t slot) const {
    const std::int64_t epoch = turn / micro_batches_per_epoch();
    const std::int64_t position =
        turn % micro_batches_per_epoch() * options.rows_per_micro_batch + slot;
    if (position >= rows.num_rows()) return std::nullopt;
    if (options.order == RowOrder::in_order)
      return epoch == 0 ? std::optional(position) : std::nullopt;
    return static_cast<std::int64_t>(
        permutation.at(static_cast<std::uint64_t>(epoch), static_cast<std::uint64_t>(position)));
  }

  std::int64_t trained_tokens(std::int64_t turn) const {
    std::int64_t count = 0;
    for (std::int64_t slot = 0; slot < options.rows_per_micro_batch; ++slot)
      if (const auto row = row_at(turn, slot)) count += rows.trained_tokens(*row);
    return count;
  }

  void write_segment(const RowSegment& segment, MicroBatchWriter& writer) const {
    const TokenShard& shard = shards[segment.shard];
    std::uint64_t document = document_of(shard, segment.begin);
    for (std::uint64_t begin = segment.begin; begin < segment.end; ++document) {
      const std::uint64_t document_end = shard.document_end(document);
      const std::uint64_t end = std::min(segment.end, document_end);
      // In windows the next row goes on with the document; elsewhere it was cut for good.
      const bool goes_on = options.layout == RowLayout::windows;
      writer.add(shard, {begin, end, goes_on ? document_end : end});
      begin = end;
    }
  }

  void write_row(std::int64_t row, MicroBatchWriter& writer) const {
    for (const RowSegment& segment : rows.row(row)) write_segment(segment, writer);
  }

  // Constant after construction.
  std::vector<TokenShard> shards;
  BatchOptions options;
  RowTable rows;
  RowPermutation permutation;
};

Batches::Batches(std::vector<TokenShard> shards, const BatchOptions& options)
    : impl_(std::make_unique<Impl>(std::move(shards), options)) {}
Batches::~Batches() = default;

std::int64_t Batches::num_rows() const { return impl_->rows.num_rows(); }

std::int64_t Batches::tokens_per_micro_batch() const {
  return impl_->options.sequence_length * impl_->options.rows_per_micro_batch;
}

std::int64_t Batches::micro_batches_per_epoch() const { return impl_->micro_batches_per_epoch(); }

std::int64_t Batches::trained_tokens_in_epoch() const { return impl_->rows.trained_tokens(); }

std::int64_t Batches::trained_tokens(std::int64_t index) const {
  ensure(index >= 0);
  std::int64_t count = 0;
  for (int rank = 0; rank < impl_->options.world; ++rank)
    count += impl_->trained_tokens(impl_->turn_of(index, rank));
  return count;
}

std::int64_t Batches::fill(std::int64_t index, std::span<std::int32_t> target) const {
  ensure(index >= 0);
  ensure(target.size() == 3 * static_cast<std::size_t>(tokens_per_micro_batch()));
  MicroBatchWriter writer(target);
  const std::int64_t turn = impl_->turn_of(index, impl_->options.rank);
  for (std::int64_t slot = 0; slot < impl_->options.rows_per_micro_batch; ++slot) {
    if (const auto row = impl_->row_at(turn, slot)) impl_->write_row(*row, writer);
    writer.pad_to(static_cast<std::size_t>((slot + 1) * impl_->options.sequence_length));
  }
  return writer.num_trained();
}

}  // namespace strata
