#pragma once
// Batches: documents of token shards laid out in fixed-size rows, and the order in which rows are
// seen.
//
// Layouts. `windows`: the shard as one stream cut into rows of `sequence_length` (documents longer
// than a row go on in the next; attention never crosses a document). `packed`: documents, cut at
// sequence_length, placed whole into rows first-fit in order; `separate`: one document per row. In
// each, positions restart at a document's start, the label of a token is the next token of its
// document, and a document's last token and masked targets have none (-1). A document that goes on
// in the next row restarts there, but its row's last token keeps its label; one cut for good ends
// at the cut. Rows are padded with token 0, label -1, each pad token its own document. The order of
// rows in epoch e is a counter-based permutation of (seed, e): O(1) to seek, nothing to save but
// the position.
//
// Ranks take turns: micro-batch i of rank r is number i x world + r of all, so one step of 8
// micro-batches sees the same rows as one of 8 ranks. `shuffled` runs on into the next epoch;
// `in_order` is one pass, and what lies behind it is empty rows.
//
// Thread contract: immutable after construction.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "strata/data/token_shard.hpp"

namespace strata {

enum class RowLayout : std::uint8_t { windows, packed, separate };
enum class RowOrder : std::uint8_t { shuffled, in_order };

struct BatchOptions {
  std::int64_t sequence_length = 0;
  std::int64_t rows_per_micro_batch = 1;
  RowLayout layout = RowLayout::windows;
  RowOrder order = RowOrder::shuffled;
  std::uint64_t seed = 42;
  int world = 1, rank = 0;
};

class Batches {
 public:
  // Throws ConfigError when the shards disagree on tokenizer or vocabulary or hold no trained
  // token.
  Batches(std::vector<TokenShard> shards, const BatchOptions& options);
  ~Batches();

  std::int64_t num_rows() const;
  std::int64_t tokens_per_micro_batch() const;
  // Of all ranks together, in one pass over all rows; the last may be filled up with empty rows.
  std::int64_t micro_batches_per_epoch() const;
  std::int64_t trained_tokens_in_epoch() const;  // of all ranks together
  // Trained tokens of micro-batch `index` of every rank together: the same on all ranks.
  std::int64_t trained_tokens(std::int64_t index) const;

  // Writes micro-batch `index` (counted over epochs, of this rank) as 3 x tokens_per_micro_batch
  // i32: tokens, labels, document starts (model/model.hpp, MicroBatchView). Returns its number of
  // trained tokens.
  std::int64_t fill(std::int64_t index, std::span<std::int32_t> target) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace strata
