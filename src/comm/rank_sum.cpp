#include "rank_sum.hpp"

#include <type_traits>

#include "strata/core/error.hpp"

namespace strata {
namespace {

using Sources = std::span<const std::byte* const>;

double widened(double value) { return value; }
float widened(float value) { return value; }
float widened(bfloat16 value) { return to_float(value); }

template <typename T>
void sum_ranks_of(Sources sources, std::int64_t count, T* result) {
  const auto source = [&](std::size_t rank) { return reinterpret_cast<const T*>(sources[rank]); };
  for (std::int64_t i = 0; i < count; ++i) {
    auto sum = widened(source(0)[i]);
    for (std::size_t rank = 1; rank < sources.size(); ++rank) sum += widened(source(rank)[i]);
    if constexpr (std::is_same_v<T, bfloat16>)
      result[i] = to_bfloat16(sum);
    else
      result[i] = sum;
  }
}

}  // namespace

void sum_ranks(Sources sources, DType dtype, std::int64_t count, std::byte* result) {
  if (dtype == DType::bf16)
    return sum_ranks_of(sources, count, reinterpret_cast<bfloat16*>(result));
  if (dtype == DType::f64) return sum_ranks_of(sources, count, reinterpret_cast<double*>(result));
  ensure(dtype == DType::f32);
  sum_ranks_of(sources, count, reinterpret_cast<float*>(result));
}

}  // namespace strata
