#pragma once
// What one thread needs to work on a tile of attention: a bounded size, whatever the sequence
// length. Thread contract: an object belongs to one thread.

#include <array>
#include <cstddef>

#include "kernels/cpu/attention_tile.hpp"
#include "kernels/cpu/scratch_buffer.hpp"

namespace strata::cpu {

struct TileBuffers {
  static constexpr std::size_t elements = static_cast<std::size_t>(tile_rows * tile_stride);

  // bf16 beside the fp32 they are made of; f32 in place.
  void* probabilities(DType dtype) {
    return dtype == DType::f32 ? static_cast<void*>(products.data()) : p.data();
  }
  void* gradients(DType dtype) {
    return dtype == DType::f32 ? static_cast<void*>(dp.data()) : ds.data();
  }

  alignas(64) std::array<float, elements> products, dp;
  alignas(64) std::array<bfloat16, elements> p, ds;
  alignas(64) std::array<float, tile_columns> lse, delta;  // of queries in columns
  std::array<float, tile_rows> maximum, sum;
  std::array<Visible, tile_rows> visible;
  ScratchBuffer accumulators;  // fp32 rows of head_dim
};

// The calling thread's.
TileBuffers& thread_tile_buffers();

}  // namespace strata::cpu
