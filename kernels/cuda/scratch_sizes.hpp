#pragma once
// The scratch that the CUDA kernels need, by shape: plain functions, for plans that are made where
// there is no GPU too.

#include <cstdint>

#include "strata/core/bytes.hpp"

namespace strata::cuda {

inline constexpr std::uint64_t scratch_alignment = 256;

// Of `count` elements, aligned by whoever uses them.
template <class T>
constexpr std::uint64_t scratch_bytes(std::int64_t count) {
  return static_cast<std::uint64_t>(count) * sizeof(T) + scratch_alignment;
}

// First use and number of uses of each row of the table.
constexpr std::uint64_t embedding_scratch_size(std::int64_t v) {
  return scratch_bytes<std::int32_t>(2 * v);
}

inline constexpr int norm_warps = 8;                 // of a block
inline constexpr std::int64_t short_row_max = 1024;  // one warp's: 32 elements a lane at most

// Rows of a block of RMSNorm's backward, which sums their dw.
template <int team_warps>
constexpr int team_rows = team_warps == 1 ? 8 : 16;
template <int team_warps>
constexpr int group_rows = team_rows<team_warps>* norm_warps / team_warps;

constexpr std::uint64_t rmsnorm_scratch_size(std::int64_t t, std::int64_t h) {
  const int rows = h <= short_row_max ? group_rows<1> : group_rows<norm_warps>;
  return scratch_bytes<float>(ceil_div(t, rows) * h);
}

constexpr std::uint64_t attention_scratch_size(std::int64_t t, std::int64_t q) {
  return scratch_bytes<float>(t * q);
}

}  // namespace strata::cuda
