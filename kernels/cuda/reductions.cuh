#pragma once
// Sums and maxima over the threads of a warp or block, each in one fixed order, and the caller's
// scratch as arrays.

#include <span>

#include "kernels/cuda/launch_shape.hpp"
#include "kernels/cuda/scratch_sizes.hpp"
#include "kernels/cuda/simt.hpp"

namespace strata::cuda {

template <class T>
STRATA_DEVICE T warp_sum(T value) {
  STRATA_UNROLL
  for (int mask = warp_threads / 2; mask > 0; mask /= 2) value += shuffle_xor(value, mask);
  return value;
}

template <class T>
STRATA_DEVICE T warp_max(T value) {
  STRATA_UNROLL
  for (int mask = warp_threads / 2; mask > 0; mask /= 2) {
    const T other = shuffle_xor(value, mask);
    value = other > value ? other : value;
  }
  return value;
}

// Every thread of the block gets the sum over `warps` warps. `partials` may be used again at once.
template <int warps, class T>
STRATA_DEVICE T block_sum(T value, const Shared<T>& partials) {
  value = warp_sum(value);
  if (lane_index() == 0) partials.store(warp_index(), value);
  sync_threads();
  T total{};
  STRATA_UNROLL
  for (int warp = 0; warp < warps; ++warp) total += partials.load(warp);
  sync_threads();
  return total;
}

template <int warps, class T>
STRATA_DEVICE T block_max(T value, const Shared<T>& partials) {
  value = warp_max(value);
  if (lane_index() == 0) partials.store(warp_index(), value);
  sync_threads();
  T largest = partials.load(0);
  STRATA_UNROLL
  for (int warp = 1; warp < warps; ++warp) {
    const T other = partials.load(warp);
    largest = other > largest ? other : largest;
  }
  sync_threads();
  return largest;
}

// --- Host

// `count` elements from the first aligned address of the scratch.
template <class T>
Global<T> scratch_array(std::span<std::byte> scratch, std::int64_t count) {
  ensure(scratch.size() >= scratch_bytes<T>(count));
  const auto address = reinterpret_cast<std::uintptr_t>(scratch.data());
  std::byte* aligned = scratch.data() + (align_up(address, scratch_alignment) - address);
  return {reinterpret_cast<T*>(aligned), count};
}

}  // namespace strata::cuda
