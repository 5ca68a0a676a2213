#pragma once
// Attention without tensor cores, for what they do not take: fp32, heads of other sizes, rows that
// do not begin on 16 bytes. A warp takes one query of one head (one key in backward); a lane holds
// every 32nd column of its rows. Right and deterministic before all; nobody's hot path.

#include "kernels/cuda/attention_tiles.cuh"
#include "kernels/cuda/floats.cuh"
#include "kernels/cuda/reductions.cuh"

namespace strata::cuda {

inline constexpr int plain_head_max = 256;
inline constexpr int lane_columns = plain_head_max / warp_threads;
inline constexpr int plain_threads = 128, plain_warps = plain_threads / warp_threads;

template <class T>
struct PlainAttention {
  Global<const T> q_tqd, k_tgd, v_tgd, dout_tqd;
  Global<T> out_tqd;  // written forward, read backward
  Global<const std::int32_t> starts;
  Global<float> lse_qt, delta_qt;
  Global<T> dq_tqd, dk_tgd, dv_tgd;
  std::int64_t num_tokens, query_heads, key_heads, d;
  float scale;

  STRATA_DEVICE std::int64_t query_row(std::int64_t token, std::int64_t head) const {
    return (token * query_heads + head) * d;
  }
  STRATA_DEVICE std::int64_t key_row(std::int64_t token, std::int64_t key_head) const {
    return (token * key_heads + key_head) * d;
  }
  STRATA_DEVICE std::int64_t group() const { return query_heads / key_heads; }
};

// A lane's columns of one row.
using LaneRow = Group<float, lane_columns>;

template <class T>
STRATA_DEVICE LaneRow load_lane_row(const Global<T>& from, std::int64_t row, std::int64_t d) {
  LaneRow values{};
  STRATA_UNROLL
  for (int i = 0; i < lane_columns; ++i) {
    const int column = lane_index() + i * warp_threads;
    if (column < d) values[i] = widen(from.load(row + column));
  }
  return values;
}

template <class T>
STRATA_DEVICE void store_lane_row(const Global<T>& to, std::int64_t row, std::int64_t d,
                                  const LaneRow& values) {
  STRATA_UNROLL
  for (int i = 0; i < lane_columns; ++i) {
    const int column = lane_index() + i * warp_threads;
    if (column < d) to.store(row + column, rounded<T>(values[i]));
  }
}

STRATA_DEVICE float lane_dot(const LaneRow& a, const LaneRow& b) {
  float sum = 0;
  STRATA_UNROLL
  for (int i = 0; i < lane_columns; ++i) sum += a[i] * b[i];
  return warp_sum(sum);
}

STRATA_DEVICE void add_scaled(LaneRow& to, const LaneRow& row, float factor) {
  STRATA_UNROLL
  for (int i = 0; i < lane_columns; ++i) to[i] += row[i] * factor;
}

STRATA_DEVICE std::int64_t plain_row() { return block_x() * plain_warps + warp_index(); }

template <class T>
STRATA_KERNEL(plain_threads)
plain_attention_forward_kernel(PlainAttention<T> args) {
  const std::int64_t token = plain_row(), head = block_y(), key_head = head / args.group();
  if (token >= args.num_tokens) return;
  const LaneRow q = load_lane_row(args.q_tqd, args.query_row(token, head), args.d);
  LaneRow out{};
  float largest = -std::bit_cast<float>(0x7f800000u), sum = 0;
  for (std::int64_t key = args.starts.load(token); key <= token; ++key) {
    const std::int64_t row = args.key_row(key, key_head);
    const float score = lane_dot(q, load_lane_row(args.k_tgd, row, args.d)) * args.scale;
    const float next = score > largest ? score : largest;
    const float factor = std::exp(largest - next), p = std::exp(score - next);
    STRATA_UNROLL
    for (int i = 0; i < lane_columns; ++i) out[i] *= factor;
    add_scaled(out, load_lane_row(args.v_tgd, row, args.d), p);
    sum = sum * factor + p;
    largest = next;
  }
  STRATA_UNROLL
  for (int i = 0; i < lane_columns; ++i) out[i] /= sum;
  store_lane_row(args.out_tqd, args.query_row(token, head), args.d, out);
  if (lane_index() == 0) args.lse_qt.store(head * args.num_tokens + token, largest + std::log(sum));
}

// What the gradient of one score needs, from the rows of its query and its key.
struct ScoreGradient {
  float p, dscore;
};

STRATA_DEVICE ScoreGradient score_gradient(float score, float dp, float lse, float delta,
                                           float scale) {
  const float p = std::exp(score * scale - lse);
  return {p, p * (dp - delta) * scale};
}

template <class T>
STRATA_KERNEL(plain_threads)
plain_attention_dq_kernel(PlainAttention<T> args) {
  const std::int64_t token = plain_row(), head = block_y(), key_head = head / args.group();
  if (token >= args.num_tokens) return;
  const std::int64_t row = args.query_row(token, head), at = head * args.num_tokens + token;
  const LaneRow q = load_lane_row(args.q_tqd, row, args.d);
  const LaneRow dout = load_lane_row(args.dout_tqd, row, args.d);
  const float delta = lane_dot(dout, load_lane_row(args.out_tqd, row, args.d));
  const float lse = args.lse_qt.load(at);
  if (lane_index() == 0) args.delta_qt.store(at, delta);
  LaneRow dq{};
  for (std::int64_t key = args.starts.load(token); key <= token; ++key) {
    const std::int64_t key_row = args.key_row(key, key_head);
    const LaneRow k = load_lane_row(args.k_tgd, key_row, args.d);
    const float dp = lane_dot(dout, load_lane_row(args.v_tgd, key_row, args.d));
    add_scaled(dq, k, score_gradient(lane_dot(q, k), dp, lse, delta, args.scale).dscore);
  }
  store_lane_row(args.dq_tqd, row, args.d, dq);
}

// After the kernel above, whose deltas it reads.
template <class T>
STRATA_KERNEL(plain_threads)
plain_attention_dkv_kernel(PlainAttention<T> args) {
  const std::int64_t key = plain_row(), key_head = block_y();
  if (key >= args.num_tokens) return;
  const LaneRow k = load_lane_row(args.k_tgd, args.key_row(key, key_head), args.d);
  const LaneRow v = load_lane_row(args.v_tgd, args.key_row(key, key_head), args.d);
  LaneRow dk{}, dv{};
  for (std::int64_t head = key_head * args.group(); head < (key_head + 1) * args.group(); ++head) {
    for (std::int64_t token = key; token < args.num_tokens && args.starts.load(token) <= key;
         ++token) {
      const std::int64_t row = args.query_row(token, head), at = head * args.num_tokens + token;
      const LaneRow q = load_lane_row(args.q_tqd, row, args.d);
      const LaneRow dout = load_lane_row(args.dout_tqd, row, args.d);
      const ScoreGradient gradient =
          score_gradient(lane_dot(q, k), lane_dot(dout, v), args.lse_qt.load(at),
                         args.delta_qt.load(at), args.scale);
      add_scaled(dv, dout, gradient.p);
      add_scaled(dk, q, gradient.dscore);
    }
  }
  store_lane_row(args.dk_tgd, args.key_row(key, key_head), args.d, dk);
  store_lane_row(args.dv_tgd, args.key_row(key, key_head), args.d, dv);
}

}  // namespace strata::cuda
