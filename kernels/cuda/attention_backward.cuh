#pragma once
// Causal attention within documents, backward. Scores are computed anew twice, once by blocks of
// queries for dq and once by blocks of keys for dk and dv: 7 products where 5 would do, but each
// output has one block that sums it in one order, without atomics.
//
// With p = exp(score - lse) and delta = dout . out of each row: dv += p dout, dscore = p (dout . v
// - delta) scale, dq += dscore k, dk += dscore q.

#include "kernels/cuda/attention_tiles.cuh"

namespace strata::cuda {

struct AttentionBackward {
  Global<const bfloat16> q_tqd, k_tgd, v_tgd, out_tqd, dout_tqd;
  Global<const std::int32_t> starts;
  Global<const float> lse_qt;
  Global<float> delta_qt;
  Global<bfloat16> dq_tqd, dk_tgd, dv_tgd;
  int num_tokens, query_heads, key_heads;
  float scale;
};

// --- delta

inline constexpr int delta_threads = 256;

// d / 8 threads a row of one head.
template <int d>
STRATA_KERNEL(delta_threads)
attention_delta_kernel(AttentionBackward args) {
  constexpr int row_threads = d / 8, block_rows = delta_threads / row_threads;
  const std::int64_t row = block_x() * block_rows + thread_index() / row_threads;
  const bool exists = row < std::int64_t{args.num_tokens} * args.query_heads;
  float sum = 0;
  if (exists) {
    const std::int64_t at = row * d + thread_index() % row_threads * 8;
    const auto out = args.out_tqd.template load_group<8>(at);
    const auto dout = args.dout_tqd.template load_group<8>(at);
    STRATA_UNROLL
    for (int i = 0; i < 8; ++i) sum += to_float(out[i]) * to_float(dout[i]);
  }
  STRATA_UNROLL
  for (int mask = row_threads / 2; mask > 0; mask /= 2) sum += shuffle_xor(sum, mask);
  if (!exists || thread_index() % row_threads != 0) return;
  const std::int64_t token = row / args.query_heads, head = row % args.query_heads;
  args.delta_qt.store(head * args.num_tokens + token, sum);
}

// --- dq

// A thread's two queries.
struct QueryRows {
  int query[2];
  int first[2];
  float lse_log2[2], delta[2];
};

STRATA_DEVICE QueryRows query_rows(const AttentionBackward& args, std::int64_t head, int query) {
  QueryRows rows{};
  STRATA_UNROLL
  for (int half = 0; half < 2; ++half) {
    rows.query[half] = query + 8 * half;
    rows.first[half] = first_visible(args.starts, rows.query[half], args.num_tokens);
    if (rows.query[half] >= args.num_tokens) continue;
    const std::int64_t at = head * args.num_tokens + rows.query[half];
    rows.lse_log2[half] = args.lse_qt.load(at) * log2_e;
    rows.delta[half] = args.delta_qt.load(at);
  }
  return rows;
}

// scores becomes the gradient of the scores.
STRATA_DEVICE void differentiate_rows(RowSums<tile_tokens>& scores, const RowSums<tile_tokens>& dp,
                                      const QueryRows& rows, int first_key, float scale) {
  const float scale_log2 = scale * log2_e;
  STRATA_UNROLL
  for (int n = 0; n < tile_tokens / 8; ++n) {
    STRATA_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int half = i / 2;
      const int key = first_key + 8 * n + 2 * (lane_index() % 4) + i % 2;
      const bool visible = rows.first[half] <= key && key <= rows.query[half];
      const float p = exp2_fast(std::fma(scores[n][i], scale_log2, -rows.lse_log2[half]));
      scores[n][i] = visible ? p * (dp[n][i] - rows.delta[half]) * scale : 0;
    }
  }
}

template <int d>
STRATA_KERNEL(attention_threads)
attention_dq_kernel(AttentionBackward args) {
  constexpr std::int64_t bytes = Tile<d>::bytes(tile_tokens);
  const Tile<d> q_tile(0, tile_tokens), dout_tile(bytes, tile_tokens),
      k_tile(2 * bytes, tile_tokens), v_tile(3 * bytes, tile_tokens);
  const std::int64_t head = block_y();
  const int t = args.num_tokens;
  const std::int64_t key_head = head / (args.query_heads / args.key_heads);
  const auto last_tile = static_cast<int>(grid_x() - 1 - block_x());
  const int first_query = last_tile * tile_tokens;
  const int row = warp_index() * warp_rows;
  start_tile<d, tile_tokens>(q_tile, head_rows<d>(args.q_tqd, t, args.query_heads, head),
                             first_query);
  start_tile<d, tile_tokens>(dout_tile, head_rows<d>(args.dout_tqd, t, args.query_heads, head),
                             first_query);
  const QueryRows rows = query_rows(args, head, first_query + row + lane_index() / 4);
  const auto k = head_rows<d>(args.k_tgd, t, args.key_heads, key_head);
  const auto v = head_rows<d>(args.v_tgd, t, args.key_heads, key_head);
  RowSums<d> dq{};
  for (int tile = args.starts.load(first_query) / tile_tokens; tile <= last_tile; ++tile) {
    sync_threads();
    start_tile<d, tile_tokens>(k_tile, k, tile * tile_tokens);
    start_tile<d, tile_tokens>(v_tile, v, tile * tile_tokens);
    commit_copies();
    finish_tiles();
    RowSums<tile_tokens> scores = product_of_rows<d, tile_tokens>(q_tile, row, k_tile);
    const RowSums<tile_tokens> dp = product_of_rows<d, tile_tokens>(dout_tile, row, v_tile);
    differentiate_rows(scores, dp, rows, tile * tile_tokens, args.scale);
    add_product<d, tile_tokens>(dq, narrowed<tile_tokens>(scores), k_tile);
  }
  store_rows<d>(dq, q_tile, row, head_rows<d>(args.dq_tqd, t, args.query_heads, head),
                first_query + row);
}

// --- dk and dv

// Queries at a time: two accumulators of d columns leave room for fewer where d is large.
template <int d>
constexpr int query_tile = d > 64 ? 32 : 64;

// What a block of keys needs to know of a tile of queries.
template <int queries>
struct QueryTable {
  static constexpr std::int64_t bytes = 3 * queries * 4;

  Shared<float> lse_log2, delta;
  Shared<std::int32_t> first;

  STRATA_DEVICE explicit QueryTable(std::int64_t byte_offset)
      : lse_log2(byte_offset, queries),
        delta(byte_offset + queries * 4, queries),
        first(byte_offset + queries * 8, queries) {}

  STRATA_DEVICE void fill(const AttentionBackward& args, std::int64_t head, int first_query) const {
    if (thread_index() >= queries) return;
    const int i = thread_index();
    const int query = first_query + i;
    const bool exists = query < args.num_tokens;
    const std::int64_t at = head * args.num_tokens + query;
    first.store(i, first_visible(args.starts, query, args.num_tokens));
    lse_log2.store(i, exists ? args.lse_qt.load(at) * log2_e : 0);
    delta.store(i, exists ? args.delta_qt.load(at) : 0);
  }
};

// Rows are keys, columns queries: scores become probabilities, dp the gradient of the scores.
template <int queries>
STRATA_DEVICE void differentiate_columns(RowSums<queries>& scores, RowSums<queries>& dp,
                                         const QueryTable<queries>& table, int key, int first_query,
                                         float scale) {
  const float scale_log2 = scale * log2_e;
  STRATA_UNROLL
  for (int n = 0; n < queries / 8; ++n) {
    STRATA_UNROLL
    for (int side = 0; side < 2; ++side) {
      const int column = 8 * n + 2 * (lane_index() % 4) + side;
      const int query = first_query + column, first = table.first.load(column);
      const float lse_log2 = table.lse_log2.load(column), delta = table.delta.load(column);
      STRATA_UNROLL
      for (int half = 0; half < 2; ++half) {
        const int i = 2 * half + side;
        const int row_key = key + 8 * half;
        const bool visible = first <= row_key && row_key <= query;
        const float p = exp2_fast(std::fma(scores[n][i], scale_log2, -lse_log2));
        scores[n][i] = visible ? p : 0;
        dp[n][i] = visible ? p * (dp[n][i] - delta) * scale : 0;
      }
    }
  }
}

template <int d>
struct KeyBlockTiles {
  static constexpr int queries = query_tile<d>;
  static constexpr std::int64_t key_bytes = Tile<d>::bytes(tile_tokens);
  static constexpr std::int64_t query_bytes = Tile<d>::bytes(queries);
  static constexpr std::int64_t bytes =
      2 * key_bytes + 2 * query_bytes + QueryTable<queries>::bytes;

  Tile<d> k, v, q, dout;
  QueryTable<queries> table;

  STRATA_DEVICE KeyBlockTiles()
      : k(0, tile_tokens),
        v(key_bytes, tile_tokens),
        q(2 * key_bytes, queries),
        dout(2 * key_bytes + query_bytes, queries),
        table(2 * key_bytes + 2 * query_bytes) {}
};

template <int d>
STRATA_DEVICE void visit_queries(const AttentionBackward& args, const KeyBlockTiles<d>& tiles,
                                 std::int64_t head, int first_query, int key, RowSums<d>& dk,
                                 RowSums<d>& dv) {
  constexpr int queries = query_tile<d>;
  const int row = warp_index() * warp_rows;
  sync_threads();
  start_tile<d, queries>(tiles.q, head_rows<d>(args.q_tqd, args.num_tokens, args.query_heads, head),
                         first_query);
  start_tile<d, queries>(tiles.dout,
                         head_rows<d>(args.dout_tqd, args.num_tokens, args.query_heads, head),
                         first_query);
  commit_copies();
  tiles.table.fill(args, head, first_query);
  finish_tiles();
  RowSums<queries> scores = product_of_rows<d, queries>(tiles.k, row, tiles.q);
  RowSums<queries> dp = product_of_rows<d, queries>(tiles.v, row, tiles.dout);
  differentiate_columns<queries>(scores, dp, tiles.table, key, first_query, args.scale);
  add_product<d, queries>(dv, narrowed<queries>(scores), tiles.dout);
  add_product<d, queries>(dk, narrowed<queries>(dp), tiles.q);
}

template <int d>
STRATA_KERNEL(attention_threads)
attention_dkv_kernel(AttentionBackward args) {
  constexpr int queries = query_tile<d>;
  const KeyBlockTiles<d> tiles;
  const auto key_head = static_cast<int>(block_y());
  const int t = args.num_tokens;
  const auto first_key = static_cast<int>(block_x() * tile_tokens);
  const int last_key = (first_key + tile_tokens < t ? first_key + tile_tokens : t) - 1;
  const int row = warp_index() * warp_rows;
  start_tile<d, tile_tokens>(tiles.k, head_rows<d>(args.k_tgd, t, args.key_heads, key_head),
                             first_key);
  start_tile<d, tile_tokens>(tiles.v, head_rows<d>(args.v_tgd, t, args.key_heads, key_head),
                             first_key);
  RowSums<d> dk{}, dv{};
  const int group = args.query_heads / args.key_heads;
  for (int head = key_head * group; head < (key_head + 1) * group; ++head) {
    // Documents begin in order: where one begins after the last key, no later query sees a key.
    for (int query = first_key; query < t && args.starts.load(query) <= last_key;
         query += queries) {
      visit_queries<d>(args, tiles, head, query, first_key + row + lane_index() / 4, dk, dv);
    }
  }
  const auto dk_head = head_rows<d>(args.dk_tgd, t, args.key_heads, key_head);
  const auto dv_head = head_rows<d>(args.dv_tgd, t, args.key_heads, key_head);
  store_rows<d>(dk, tiles.k, row, dk_head, first_key + row);
  store_rows<d>(dv, tiles.v, row, dv_head, first_key + row);
}

}  // namespace strata::cuda
