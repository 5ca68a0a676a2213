#pragma once
// Sizes of an attention call, and which tokens see which. Token i sees key j if document_start[i]
// <= j <= i; starts never decrease, so a query's keys and a key's queries are both ranges. Thread
// contract: immutable after construction.

#include <cstdint>
#include <span>

#include "kernels/cpu/attention_tile.hpp"
#include "strata/kernels/kernels.hpp"

namespace strata::cpu {

struct TokenRange {
  std::int64_t begin, end;
  std::int64_t size() const { return end - begin; }
};

class AttentionShape {
 public:
  explicit AttentionShape(const AttentionArgs& args);  // Checks the shapes of forward's tensors.

  std::int64_t tokens() const { return tokens_; }
  std::int64_t query_heads() const { return query_heads_; }
  std::int64_t key_heads() const { return key_heads_; }
  std::int64_t heads_per_key_head() const { return query_heads_ / key_heads_; }
  std::int64_t head_dim() const { return head_dim_; }

  // Blocks of tile_rows tokens.
  std::int64_t num_blocks() const;
  TokenRange block(std::int64_t index) const;

  // The keys that a block of queries sees, and the queries that see a block of keys; widened to
  // whole blocks so that documents do not multiply the number of shapes.
  TokenRange keys_of(const TokenRange& queries) const;
  TokenRange queries_of(const TokenRange& keys) const;

  // Per row, the visible columns of a tile whose rows are queries and columns keys, and the other
  // way round.
  void visible_keys(const TokenRange& queries, const TokenRange& keys,
                    std::span<Visible> visible_r) const;
  void visible_queries(const TokenRange& keys, const TokenRange& queries,
                       std::span<Visible> visible_r) const;

 private:
  std::int64_t tokens_, query_heads_, key_heads_, head_dim_;
  std::span<const std::int32_t> document_start_;
};

}  // namespace strata::cpu
