// Backward: score tiles are computed anew, once by blocks of queries for dq and once by blocks of
// keys for dk and dv. That is 7 products where 5 would do, but every output has one task that sums
// it in one order, and no partial sums are kept.

#include <algorithm>
#include <cstring>

#include "kernels/cpu/attention.hpp"
#include "kernels/cpu/attention_buffers.hpp"
#include "kernels/cpu/attention_shape.hpp"
#include "kernels/cpu/head_matrix.hpp"
#include "kernels/cpu/matmul.hpp"
#include "kernels/cpu/parallel.hpp"
#include "kernels/cpu/scratch.hpp"
#include "kernels/cpu/widen.hpp"

namespace strata::cpu {
namespace {

// Writes fp32 rows of head_dim to one head of `target`.
void store_head(const float* rows_rd, std::int64_t rows, TensorView target, std::int64_t token,
                std::int64_t head) {
  const std::int64_t head_dim = target.dim(2);
  std::byte* data = head_data(target, token, head);
  if (target.dtype == DType::bf16) {
    narrow({rows_rd, head_dim}, {reinterpret_cast<bfloat16*>(data), token_stride(target)}, rows,
           head_dim);
    return;
  }
  const auto row_bytes = static_cast<std::size_t>(head_dim) * sizeof(float);
  for (std::int64_t row = 0; row < rows; ++row) {
    std::memcpy(data + row * token_stride(target) * dtype_bytes(DType::f32),
                rows_rd + row * head_dim, row_bytes);
  }
}

struct Backward {
  const AttentionArgs& args;
  const AttentionShape& shape;
  const float* delta_qt;

  DType dtype() const { return args.q_tqd.dtype; }
  std::int64_t statistic(std::int64_t head, std::int64_t token) const {
    return head * shape.tokens() + token;
  }

  // tile (products or dp) = a_rd b_cd^T.
  void multiply_heads(std::int64_t rows, std::int64_t columns, const Matrix& a_rd,
                      const Matrix& b_cd, float* tile) const {
    matmul({.m = rows,
            .n = columns,
            .k = shape.head_dim(),
            .a_mk = a_rd,
            .b_kn = transposed(b_cd),
            .c_mn = tile,
            .c_row_stride = tile_stride});
  }

  // sums_rd (+)= tile_rc b_cd.
  void multiply_tile(std::int64_t rows, std::int64_t columns, const void* tile, const Matrix& b_cd,
                     float* sums_rd, Accumulate accumulate) const {
    matmul({.m = rows,
            .n = shape.head_dim(),
            .k = columns,
            .a_mk = {tile, tile_stride, 1, dtype()},
            .b_kn = b_cd,
            .c_mn = sums_rd,
            .c_row_stride = shape.head_dim(),
            .accumulate = accumulate});
  }
};

// dq of one head for a block of queries: rows are queries, columns keys.
void query_block(const Backward& backward, std::int64_t block, std::int64_t head,
                 TileBuffers& buffers) {
  const auto& [args, shape, delta_qt] = backward;
  const TokenRange queries = shape.block(block);
  const TokenRange all_keys = shape.keys_of(queries);
  const std::int64_t key_head = head / shape.heads_per_key_head();
  const std::int64_t statistic = backward.statistic(head, queries.begin);
  float* dq_rd =
      buffers.accumulators.floats(static_cast<std::size_t>(tile_rows * shape.head_dim()));
  for (std::int64_t start = all_keys.begin; start < all_keys.end; start += tile_columns) {
    const TokenRange keys{start, std::min(all_keys.end, start + tile_columns)};
    const Matrix k_cd = head_matrix(args.k_tgd, keys.begin, key_head);
    backward.multiply_heads(queries.size(), keys.size(),
                            head_matrix(args.q_tqd, queries.begin, head), k_cd,
                            buffers.products.data());
    backward.multiply_heads(queries.size(), keys.size(),
                            head_matrix(args.dout_tqd, queries.begin, head),
                            head_matrix(args.v_tgd, keys.begin, key_head), buffers.dp.data());
    shape.visible_keys(queries, keys, buffers.visible);
    score_gradient_tile(
        {queries.size(), keys.size(), buffers.visible.data(), args.scale, backward.dtype(),
         buffers.products.data()},
        {Queries::rows, args.lse_qt.as<const float>() + statistic, delta_qt + statistic,
         buffers.dp.data(), nullptr, buffers.gradients(backward.dtype())});
    backward.multiply_tile(queries.size(), keys.size(), buffers.gradients(backward.dtype()), k_cd,
                           dq_rd, start == all_keys.begin ? Accumulate::no : Accumulate::yes);
  }
  store_head(dq_rd, queries.size(), args.dq_tqd, queries.begin, head);
}

// dk and dv of one key head for a block of keys, summed over its query heads: rows are keys,
// columns queries.
class KeyBlock {
 public:
  KeyBlock(const Backward& backward, std::int64_t block, std::int64_t key_head,
           TileBuffers& buffers)
      : backward_(backward),
        args_(backward.args),
        shape_(backward.shape),
        keys_(shape_.block(block)),
        key_head_(key_head),
        buffers_(buffers),
        dk_rd_(buffers.accumulators.floats(
            static_cast<std::size_t>(2 * tile_rows * shape_.head_dim()))),
        dv_rd_(dk_rd_ + tile_rows * shape_.head_dim()) {}

  void run() {
    Accumulate accumulate = Accumulate::no;
    const TokenRange all_queries = shape_.queries_of(keys_);
    const std::int64_t first_head = key_head_ * shape_.heads_per_key_head();
    for (std::int64_t head = first_head; head < first_head + shape_.heads_per_key_head(); ++head) {
      for (std::int64_t start = all_queries.begin; start < all_queries.end; start += tile_columns) {
        visit(head, {start, std::min(all_queries.end, start + tile_columns)}, accumulate);
        accumulate = Accumulate::yes;
      }
    }
    store_head(dk_rd_, keys_.size(), args_.dk_tgd, keys_.begin, key_head_);
    store_head(dv_rd_, keys_.size(), args_.dv_tgd, keys_.begin, key_head_);
  }

 private:
  void visit(std::int64_t head, const TokenRange& queries, Accumulate accumulate) {
    const Matrix q_cd = head_matrix(args_.q_tqd, queries.begin, head);
    const Matrix dout_cd = head_matrix(args_.dout_tqd, queries.begin, head);
    backward_.multiply_heads(keys_.size(), queries.size(),
                             head_matrix(args_.k_tgd, keys_.begin, key_head_), q_cd,
                             buffers_.products.data());
    backward_.multiply_heads(keys_.size(), queries.size(),
                             head_matrix(args_.v_tgd, keys_.begin, key_head_), dout_cd,
                             buffers_.dp.data());
    differentiate(head, queries);
    const DType dtype = backward_.dtype();
    backward_.multiply_tile(keys_.size(), queries.size(), buffers_.probabilities(dtype), dout_cd,
                            dv_rd_, accumulate);
    backward_.multiply_tile(keys_.size(), queries.size(), buffers_.gradients(dtype), q_cd, dk_rd_,
                            accumulate);
  }

  void differentiate(std::int64_t head, const TokenRange& queries) {
    // Copied: the last vector of a tile may reach past the end of the caller's arrays.
    const std::int64_t statistic = backward_.statistic(head, queries.begin);
    std::copy_n(args_.lse_qt.as<const float>() + statistic, queries.size(), buffers_.lse.begin());
    std::copy_n(backward_.delta_qt + statistic, queries.size(), buffers_.delta.begin());
    shape_.visible_queries(keys_, queries, buffers_.visible);
    const DType dtype = backward_.dtype();
    score_gradient_tile(
        {keys_.size(), queries.size(), buffers_.visible.data(), args_.scale, dtype,
         buffers_.products.data()},
        {Queries::columns, buffers_.lse.data(), buffers_.delta.data(), buffers_.dp.data(),
         buffers_.probabilities(dtype), buffers_.gradients(dtype)});
  }

  const Backward& backward_;
  const AttentionArgs& args_;
  const AttentionShape& shape_;
  TokenRange keys_;
  std::int64_t key_head_;
  TileBuffers& buffers_;
  float* dk_rd_;
  float* dv_rd_;
};

void ensure_gradient_shapes(const AttentionArgs& args) {
  ensure(args.dout_tqd.shape == args.q_tqd.shape && args.dq_tqd.shape == args.q_tqd.shape);
  ensure(args.dk_tgd.shape == args.k_tgd.shape && args.dv_tgd.shape == args.v_tgd.shape);
  ensure(args.dout_tqd.dtype == args.q_tqd.dtype && args.dq_tqd.dtype == args.q_tqd.dtype);
  ensure(args.dk_tgd.dtype == args.q_tqd.dtype && args.dv_tgd.dtype == args.q_tqd.dtype);
}

constexpr std::int64_t delta_tokens = 64;

}  // namespace

std::uint64_t attention_scratch_bytes(std::int64_t t, std::int64_t q, std::int64_t, std::int64_t) {
  return scratch_bytes<float>(t * q);
}

void attention_backward(Parallel& parallel, const AttentionArgs& args) {
  const AttentionShape shape(args);
  ensure_gradient_shapes(args);
  const auto delta_qt = scratch_array<float>(args.scratch, shape.tokens() * shape.query_heads());
  parallel.for_chunks(shape.tokens(), delta_tokens, [&](std::int64_t begin, std::int64_t end) {
    output_deltas(args.out_tqd, args.dout_tqd, begin, end, delta_qt.data());
  });
  // Longest first: the first keys are seen by the most queries, the last queries see the most keys.
  const Backward backward{args, shape, delta_qt.data()};
  const std::int64_t key_tasks = shape.num_blocks() * shape.key_heads();
  const std::int64_t query_tasks = shape.num_blocks() * shape.query_heads();
  parallel.for_each(key_tasks + query_tasks, [&](std::int64_t task) {
    TileBuffers& buffers = thread_tile_buffers();
    if (task < key_tasks) {
      KeyBlock(backward, task / shape.key_heads(), task % shape.key_heads(), buffers).run();
    } else {
      const std::int64_t index = query_tasks - 1 - (task - key_tasks);
      query_block(backward, index / shape.query_heads(), index % shape.query_heads(), buffers);
    }
  });
}

}  // namespace strata::cpu
