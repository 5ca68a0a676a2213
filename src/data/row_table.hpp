#pragma once
// A RowTable says which tokens of which shard lie in each row, for one layout
// (strata/data/batches.hpp). Thread contract: immutable after construction.

#include <cstdint>
#include <span>
#include <vector>

#include "strata/data/batches.hpp"
#include "strata/data/token_shard.hpp"

namespace strata {

// Neighbouring tokens [begin, end) of one shard.
struct RowSegment {
  std::uint32_t shard = 0;
  std::uint32_t trained = 0;  // how many of them have a label
  std::uint64_t begin = 0, end = 0;
};

class RowTable {
 public:
  RowTable(std::span<const TokenShard> shards, RowLayout layout, std::int64_t sequence_length);

  std::int64_t num_rows() const { return static_cast<std::int64_t>(first_.size()) - 1; }
  std::span<const RowSegment> row(std::int64_t index) const;
  // Tokens that have a label, of one row and over all rows.
  std::int64_t trained_tokens(std::int64_t row) const;
  std::int64_t trained_tokens() const { return trained_tokens_; }

 private:
  void add_windows(std::span<const TokenShard> shards);
  void add_documents(std::span<const TokenShard> shards);
  void add_segment(const RowSegment& segment);
  void place_one_per_row();
  void place_first_fit();

  std::uint64_t sequence_length_;
  std::int64_t trained_tokens_ = 0;
  std::vector<RowSegment> segments_;
  std::vector<std::uint64_t> first_;  // row r holds segments first_[r] .. first_[r + 1]
};

}  // namespace strata
