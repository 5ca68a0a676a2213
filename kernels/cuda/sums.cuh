#pragma once
// Sums in double, in the order that every engine keeps: squares in 64 lanes a chunk of 4096
// elements, added lane by lane; token losses one after another.

#include "kernels/cuda/floats.cuh"
#include "kernels/cuda/launch_shape.hpp"

namespace strata::cuda {

inline constexpr int square_chunk = 4096, square_lanes = 64;
inline constexpr int chunk_threads = square_lanes / group_elements;
inline constexpr int sums_threads = 256;
inline constexpr int block_chunks = sums_threads / chunk_threads;
// Of a chunk's lanes in shared memory: odd, so that the threads that add them use all banks.
inline constexpr int lane_stride = square_lanes + 1;
inline constexpr std::int64_t square_shared_bytes =
    block_chunks * lane_stride * static_cast<std::int64_t>(sizeof(double));

using Lanes = Group<double, group_elements>;

// A thread's eight lanes of one chunk. The square of a float is exact in double.
template <class T>
STRATA_DEVICE Lanes square_rows(const Global<const T>& values, std::int64_t chunk, int lane,
                                std::int64_t count, bool aligned) {
  Lanes lanes{};
  for (int row = 0; row < square_chunk / square_lanes; ++row) {
    const Span span = span_at(chunk * square_chunk + row * square_lanes + lane, count, aligned);
    if (span.count == 0) break;
    const Floats x = load_floats(values, span);
    STRATA_UNROLL
    for (int i = 0; i < group_elements; ++i) {
      const auto wide = static_cast<double>(x[i]);
      lanes[i] += wide * wide;
    }
  }
  return lanes;
}

template <class T>
STRATA_KERNEL(sums_threads)
square_sums_kernel(Global<const T> values, Global<double> partials, std::int64_t count,
                   bool aligned) {
  const Shared<double> all_lanes(0, block_chunks * lane_stride);
  const int chunk_in_block = thread_index() / chunk_threads;
  const int lane = thread_index() % chunk_threads * group_elements;
  const Lanes lanes =
      square_rows(values, block_x() * block_chunks + chunk_in_block, lane, count, aligned);
  STRATA_UNROLL
  for (int i = 0; i < group_elements; ++i)
    all_lanes.store(chunk_in_block * lane_stride + lane + i, lanes[i]);
  sync_threads();
  const std::int64_t chunk = block_x() * block_chunks + thread_index();
  if (thread_index() >= block_chunks || chunk * square_chunk >= count) return;
  double total = 0;
  for (int i = 0; i < square_lanes; ++i) total += all_lanes.load(thread_index() * lane_stride + i);
  partials.store(chunk, total);
}

inline constexpr int sum_tile = sums_threads * group_elements;

STRATA_KERNEL(sums_threads)
sum_kernel(Global<const float> values, Global<double> total, std::int64_t count, bool aligned) {
  const Shared<float> tile(0, sum_tile);
  double sum = 0;
  for (std::int64_t begin = 0; begin < count; begin += sum_tile) {
    const int offset = thread_index() * group_elements;
    tile.template store_group<group_elements>(
        offset, load_floats(values, span_at(begin + offset, count, aligned)));
    sync_threads();
    const std::int64_t end = count - begin < sum_tile ? count - begin : sum_tile;
    if (thread_index() == 0)
      for (int i = 0; i < end; ++i) sum += static_cast<double>(tile.load(i));
    sync_threads();
  }
  if (thread_index() == 0) total.store(0, sum);
}

// --- Host

inline LaunchShape square_sums_shape(std::int64_t count) {
  return {ceil_div(ceil_div(count, square_chunk), block_chunks), 1, sums_threads,
          square_shared_bytes};
}

template <class Launcher>
void launch_square_sums(Launcher& launcher, const TensorView& values, const TensorView& partials) {
  const std::int64_t count = values.count();
  ensure(partials.dtype == DType::f64 && partials.count() == ceil_div(count, square_chunk));
  if (count == 0) return;
  with_float_type(values.dtype, [&](auto element) {
    using T = decltype(element);
    launcher.launch("square_sums", square_sums_kernel<T>, square_sums_shape(count),
                    Global<const T>(values), Global<double>(partials), count, is_aligned(values));
  });
}

template <class Launcher>
void launch_sum(Launcher& launcher, const TensorView& values_t, const TensorView& total) {
  ensure(values_t.dtype == DType::f32 && total.dtype == DType::f64 && total.count() == 1);
  const LaunchShape shape{1, 1, sums_threads, sum_tile * static_cast<int>(sizeof(float))};
  launcher.launch("sum", sum_kernel, shape, Global<const float>(values_t), Global<double>(total),
                  values_t.count(), is_aligned(values_t));
}

}  // namespace strata::cuda
