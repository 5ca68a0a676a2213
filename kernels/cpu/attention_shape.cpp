#include "kernels/cpu/attention_shape.hpp"

#include <algorithm>

#include "strata/core/bytes.hpp"

namespace strata::cpu {
namespace {

// The part of [begin, end) that lies in `columns`, counted from its begin.
Visible within(std::int64_t begin, std::int64_t end, const TokenRange& columns) {
  const std::int64_t first = std::clamp(begin, columns.begin, columns.end);
  const std::int64_t last = std::clamp(end, first, columns.end);
  return {first - columns.begin, last - columns.begin};
}

}  // namespace

AttentionShape::AttentionShape(const AttentionArgs& args)
    : tokens_(args.q_tqd.dim(0)),
      query_heads_(args.q_tqd.dim(1)),
      key_heads_(args.k_tgd.dim(1)),
      head_dim_(args.q_tqd.dim(2)),
      document_start_(args.document_start_t.as<const std::int32_t>(),
                      static_cast<std::size_t>(tokens_)) {
  ensure(args.q_tqd.shape.rank == 3 && key_heads_ > 0 && query_heads_ % key_heads_ == 0);
  const Shape keys{tokens_, key_heads_, head_dim_};
  ensure(args.k_tgd.shape == keys && args.v_tgd.shape == keys &&
         args.out_tqd.shape == args.q_tqd.shape);
  ensure(args.document_start_t.dtype == DType::i32 && args.document_start_t.count() == tokens_);
  ensure(args.lse_qt.dtype == DType::f32 && args.lse_qt.count() == query_heads_ * tokens_);
  const DType dtype = args.q_tqd.dtype;
  ensure(args.k_tgd.dtype == dtype && args.v_tgd.dtype == dtype && args.out_tqd.dtype == dtype);
}

std::int64_t AttentionShape::num_blocks() const { return ceil_div(tokens_, tile_rows); }

TokenRange AttentionShape::block(std::int64_t index) const {
  return {index * tile_rows, std::min(tokens_, (index + 1) * tile_rows)};
}

TokenRange AttentionShape::keys_of(const TokenRange& queries) const {
  const std::int64_t first = document_start_[static_cast<std::size_t>(queries.begin)];
  return {first / tile_rows * tile_rows, queries.end};
}

TokenRange AttentionShape::queries_of(const TokenRange& keys) const {
  const auto after = std::lower_bound(document_start_.begin(), document_start_.end(), keys.end);
  const std::int64_t end = after - document_start_.begin();
  return {keys.begin, std::min(tokens_, ceil_div(end, tile_rows) * tile_rows)};
}

void AttentionShape::visible_keys(const TokenRange& queries, const TokenRange& keys,
                                  std::span<Visible> visible_r) const {
  for (std::int64_t row = 0; row < queries.size(); ++row) {
    const std::int64_t query = queries.begin + row;
    const std::int64_t first = document_start_[static_cast<std::size_t>(query)];
    visible_r[static_cast<std::size_t>(row)] = within(first, query + 1, keys);
  }
}

void AttentionShape::visible_queries(const TokenRange& keys, const TokenRange& queries,
                                     std::span<Visible> visible_r) const {
  for (std::int64_t row = 0; row < keys.size(); ++row) {
    const std::int64_t key = keys.begin + row;
    const auto after = std::upper_bound(document_start_.begin(), document_start_.end(), key);
    visible_r[static_cast<std::size_t>(row)] =
        within(key, after - document_start_.begin(), queries);
  }
}

}  // namespace strata::cpu
