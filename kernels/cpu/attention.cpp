// Forward: a task takes one head of a block of queries through its tiles of keys with a running
// softmax.

#include "kernels/cpu/attention.hpp"

#include <algorithm>
#include <limits>

#include "kernels/cpu/attention_buffers.hpp"
#include "kernels/cpu/attention_shape.hpp"
#include "kernels/cpu/head_matrix.hpp"
#include "kernels/cpu/matmul.hpp"
#include "kernels/cpu/parallel.hpp"

namespace strata::cpu {
namespace {

class ForwardBlock {
 public:
  ForwardBlock(const AttentionArgs& args, const AttentionShape& shape, std::int64_t block,
               std::int64_t head, TileBuffers& buffers)
      : args_(args),
        shape_(shape),
        queries_(shape.block(block)),
        head_(head),
        buffers_(buffers),
        state_{buffers.maximum.data(), buffers.sum.data(),
               buffers.accumulators.floats(static_cast<std::size_t>(tile_rows * shape.head_dim())),
               shape.head_dim()} {}

  void run() {
    std::fill(buffers_.maximum.begin(), buffers_.maximum.end(),
              -std::numeric_limits<float>::infinity());
    std::fill(buffers_.sum.begin(), buffers_.sum.end(), 0.0f);
    const TokenRange keys = shape_.keys_of(queries_);
    for (std::int64_t start = keys.begin; start < keys.end; start += tile_columns) {
      visit({start, std::min(keys.end, start + tile_columns)},
            start == keys.begin ? Accumulate::no : Accumulate::yes);
    }
    finish_softmax(state_, queries_.size(), args_.out_tqd.dtype,
                   head_data(args_.out_tqd, queries_.begin, head_), token_stride(args_.out_tqd),
                   args_.lse_qt.as<float>() + head_ * shape_.tokens() + queries_.begin);
  }

 private:
  std::int64_t key_head() const { return head_ / shape_.heads_per_key_head(); }

  void visit(const TokenRange& keys, Accumulate accumulate) {
    matmul({.m = queries_.size(),
            .n = keys.size(),
            .k = shape_.head_dim(),
            .a_mk = head_matrix(args_.q_tqd, queries_.begin, head_),
            .b_kn = transposed(head_matrix(args_.k_tgd, keys.begin, key_head())),
            .c_mn = buffers_.products.data(),
            .c_row_stride = tile_stride});
    shape_.visible_keys(queries_, keys, buffers_.visible);
    const DType dtype = args_.q_tqd.dtype;
    softmax_tile({queries_.size(), keys.size(), buffers_.visible.data(), args_.scale, dtype,
                  buffers_.products.data()},
                 buffers_.probabilities(dtype), state_);
    add_values(keys, accumulate);
  }

  void add_values(const TokenRange& keys, Accumulate accumulate) {
    const DType dtype = args_.q_tqd.dtype;
    matmul({.m = queries_.size(),
            .n = shape_.head_dim(),
            .k = keys.size(),
            .a_mk = {buffers_.probabilities(dtype), tile_stride, 1, dtype},
            .b_kn = head_matrix(args_.v_tgd, keys.begin, key_head()),
            .c_mn = state_.out_rd,
            .c_row_stride = shape_.head_dim(),
            .accumulate = accumulate});
  }

  const AttentionArgs& args_;
  const AttentionShape& shape_;
  TokenRange queries_;
  std::int64_t head_;
  TileBuffers& buffers_;
  SoftmaxState state_;
};

}  // namespace

void attention_forward(Parallel& parallel, const AttentionArgs& args) {
  const AttentionShape shape(args);
  ensure(args.scale > 0.0f);
  // The last blocks see the most keys: they go first.
  const std::int64_t last_block = shape.num_blocks() - 1;
  parallel.for_each(shape.num_blocks() * shape.query_heads(), [&](std::int64_t task) {
    const std::int64_t block = last_block - task / shape.query_heads();
    ForwardBlock(args, shape, block, task % shape.query_heads(), thread_tile_buffers()).run();
  });
}

}  // namespace strata::cpu
