#pragma once
// What the attention kernels are made of: tiles of 64 tokens of one head in shared memory, and
// products of tiles on tensor cores. A block has four warps; each takes 16 rows of every product.
//
// A product's fp32 sums lie in registers as the m16n8k16 instruction leaves them: with group = lane
// / 4 and pair = lane % 4, a thread holds columns 8 n + 2 pair and their right neighbours of rows
// group (sums 0, 1) and group + 8 (sums 2, 3). Narrowed to bf16 they are the left operand of a next
// product as they are.

#include "kernels/cuda/launch_shape.hpp"
#include "kernels/cuda/simt.hpp"

namespace strata::cuda {

inline constexpr int attention_warps = 4, attention_threads = attention_warps * warp_threads;
inline constexpr int warp_rows = 16, tile_tokens = attention_warps * warp_rows;

// Rows of d elements, in chunks of 16 bytes. Row r's chunk c lies where chunk c ^ (r % 8) would:
// the same chunk of eight rows then fills all banks.
template <int d>
class Tile {
 public:
  static constexpr int chunks = d / 8;
  static constexpr std::int64_t bytes(int rows) {
    return std::int64_t{rows} * d * static_cast<std::int64_t>(sizeof(bfloat16));
  }

  STRATA_DEVICE Tile(std::int64_t byte_offset, int rows) : data_(byte_offset, rows * d) {}

  STRATA_DEVICE static int index(int row, int chunk) { return row * d + (chunk ^ (row & 7)) * 8; }
  STRATA_DEVICE const Shared<bfloat16>& data() const { return data_; }

  // Left operand: rows [row, row + 16), columns [16 k, 16 k + 16).
  STRATA_DEVICE Fragment4 left(int row, int k) const {
    return load_matrices(data_, index(row + lane_index() % 16, 2 * k + lane_index() / 16));
  }
  // Right operands of two products, whose columns are rows [row, row + 8) and [row + 8, row + 16):
  // the same columns of the tile are summed over.
  STRATA_DEVICE Fragment4 right_of_rows(int row, int k) const {
    const int lane = lane_index();
    return load_matrices(data_, index(row + lane / 16 * 8 + lane % 8, 2 * k + lane / 8 % 2));
  }
  // Right operands of two products over rows [row, row + 16), whose columns are those of chunks
  // 2 n and 2 n + 1.
  STRATA_DEVICE Fragment4 right_of_columns(int row, int n) const {
    const int lane = lane_index();
    return load_matrices_transposed(data_, index(row + lane % 16, 2 * n + lane / 16));
  }

 private:
  Shared<bfloat16> data_;
};

// One head's rows in a tensor of [tokens, heads, d].
template <class T>
struct HeadRows {
  Global<T> data;
  int num_tokens;
  std::int64_t stride;  // from token to token
  std::int64_t first;

  STRATA_DEVICE std::int64_t at(int token, int chunk) const {
    return token * stride + first + chunk * 8;
  }
};

template <int d, class T>
STRATA_DEVICE HeadRows<T> head_rows(const Global<T>& data, int num_tokens, int num_heads,
                                    std::int64_t head) {
  return {data, num_tokens, std::int64_t{num_heads} * d, head * d};
}

// Starts copies of tokens from `first` on; zeros beyond the last.
template <int d, int rows>
STRATA_DEVICE void start_tile(const Tile<d>& tile, const HeadRows<const bfloat16>& head,
                              int first) {
  STRATA_UNROLL
  for (int i = 0; i < rows * Tile<d>::chunks; i += attention_threads) {
    const int item = i + thread_index();
    const int row = item / Tile<d>::chunks, chunk = item % Tile<d>::chunks;
    copy_async16(tile.data(), Tile<d>::index(row, chunk), head.data, head.at(first + row, chunk),
                 first + row < head.num_tokens);
  }
}

STRATA_DEVICE void finish_tiles() {
  wait_copies<0>();
  sync_threads();
}

// --- Products

template <int columns>
using RowSums = Group<Sums4, columns / 8>;
template <int columns>
using LeftOperand = Group<Fragment4, columns / 16>;

// sums += left right^T, right's rows being the columns of the product.
template <int columns>
STRATA_DEVICE void add_columns(RowSums<columns>& sums, int n, const Fragment4& left,
                               const Fragment4& right) {
  multiply_add(sums[2 * n], left, {{right[0], right[1]}});
  multiply_add(sums[2 * n + 1], left, {{right[2], right[3]}});
}

// Rows [row, row + 16) of `left` times all of `right`, transposed.
template <int d, int columns>
STRATA_DEVICE RowSums<columns> product_of_rows(const Tile<d>& left, int row, const Tile<d>& right) {
  RowSums<columns> sums{};
  STRATA_UNROLL
  for (int k = 0; k < d / 16; ++k) {
    const Fragment4 operand = left.left(row, k);
    STRATA_UNROLL
    for (int n = 0; n < columns / 16; ++n)
      add_columns<columns>(sums, n, operand, right.right_of_rows(16 * n, k));
  }
  return sums;
}

// sums += left right, over right's rows.
template <int d, int rows>
STRATA_DEVICE void add_product(RowSums<d>& sums, const LeftOperand<rows>& left,
                               const Tile<d>& right) {
  STRATA_UNROLL
  for (int k = 0; k < rows / 16; ++k) {
    STRATA_UNROLL
    for (int n = 0; n < d / 16; ++n)
      add_columns<d>(sums, n, left[k], right.right_of_columns(16 * k, n));
  }
}

template <int columns>
STRATA_DEVICE LeftOperand<columns> narrowed(const RowSums<columns>& sums) {
  LeftOperand<columns> result{};
  STRATA_UNROLL
  for (int k = 0; k < columns / 16; ++k) {
    const Sums4 &near = sums[2 * k], &far = sums[2 * k + 1];
    result[k] = {{pack2(near[0], near[1]), pack2(near[2], near[3]), pack2(far[0], far[1]),
                  pack2(far[2], far[3])}};
  }
  return result;
}

// The warp's 16 rows of sums, as bf16, to tokens from `token` on. They pass through the warp's own
// rows of a tile that nobody else reads, so that a thread writes 16 bytes.
template <int d>
STRATA_DEVICE void store_rows(const RowSums<d>& sums, const Tile<d>& tile, int row,
                              const HeadRows<bfloat16>& head, int token) {
  const int group = lane_index() / 4, pair = lane_index() % 4;
  sync_warp();
  STRATA_UNROLL
  for (int n = 0; n < d / 8; ++n) {
    STRATA_UNROLL
    for (int half = 0; half < 2; ++half) {
      const Group<bfloat16, 2> values{{narrow(sums[n][2 * half]), narrow(sums[n][2 * half + 1])}};
      tile.data().template store_group<2>(Tile<d>::index(row + group + 8 * half, n) + 2 * pair,
                                          values);
    }
  }
  sync_warp();
  for (int item = lane_index(); item < warp_rows * Tile<d>::chunks; item += warp_threads) {
    const int r = item / Tile<d>::chunks, chunk = item % Tile<d>::chunks;
    if (token + r >= head.num_tokens) break;
    head.data.template store_group<8>(
        head.at(token + r, chunk),
        tile.data().template load_group<8>(Tile<d>::index(row + r, chunk)));
  }
}

// --- Rows

inline constexpr float log2_e = 1.44269504088896341f, ln_2 = 0.69314718055994531f;

STRATA_DEVICE float quad_sum(float value) {
  value += shuffle_xor(value, 1);
  return value + shuffle_xor(value, 2);
}
STRATA_DEVICE float quad_max(float value) {
  const float other = shuffle_xor(value, 1);
  value = other > value ? other : value;
  const float far = shuffle_xor(value, 2);
  return far > value ? far : value;
}

// The first key a query sees; it sees none if there is no such query.
STRATA_DEVICE std::int32_t first_visible(const Global<const std::int32_t>& starts, int query,
                                         int num_tokens) {
  return query < num_tokens ? starts.load(query) : INT32_MAX;
}

}  // namespace strata::cuda
