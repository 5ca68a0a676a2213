#include "kernels/cpu/exact.hpp"

#include <algorithm>

#include "kernels/cpu/parallel.hpp"
#include "strata/core/bytes.hpp"
#include "strata/program/program.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/exact.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "kernels/cpu/elements-inl.h"

HWY_BEFORE_NAMESPACE();
namespace strata::cpu {
namespace HWY_NAMESPACE {

constexpr std::int64_t square_lanes = 64;

void cast_weight_chunk(TensorView master, TensorView weight, std::int64_t begin, std::int64_t end) {
  const float* from = master.as<const float>();
  with_element(weight.dtype, [&](auto* type) HWY_ATTR {
    auto* to = weight.as<std::remove_pointer_t<decltype(type)>>();
    for_each_vector(begin, end, [&](auto d, std::int64_t i) HWY_ATTR {
      store_weight(d, load(d, from + i), to + i);
    });
  });
}

template <class S>
HWY_INLINE void accumulate_range(const S* source, float* target, Accumulate accumulate,
                                 std::int64_t begin, std::int64_t end) {
  if (accumulate == Accumulate::no) {
    for_each_vector(begin, end, [&](auto d, std::int64_t i) HWY_ATTR {
      store(d, load(d, source + i), target + i);
    });
  } else {
    for_each_vector(begin, end, [&](auto d, std::int64_t i) HWY_ATTR {
      store(d, hn::Add(load(d, target + i), load(d, source + i)), target + i);
    });
  }
}

void accumulate_chunk(TensorView source, TensorView target, Accumulate accumulate,
                      std::int64_t begin, std::int64_t end) {
  with_element(source.dtype, [&](auto* type) HWY_ATTR {
    using S = std::remove_pointer_t<decltype(type)>;
    accumulate_range(source.as<const S>(), target.as<float>(), accumulate, begin, end);
  });
}

template <class D>
HWY_INLINE hn::Vec<D> load_double(D d, const float* from) {
  const hn::Rebind<float, D> df;
  return hn::PromoteTo(d, hn::LoadU(df, from));
}

template <class D>
HWY_INLINE hn::Vec<D> load_double(D d, const bfloat16* from) {
  const hn::Rebind<float, D> df;
  return hn::PromoteTo(d, load(df, from));
}

// Adds the squares of columns [0, 8 vectors) of `rows` rows of 64 to `lanes`. The square of a float
// is exact in double, so a fused multiply-add rounds as a separate addition does.
template <class T>
HWY_INLINE void square_columns(const T* values, std::int64_t rows, double* lanes) {
  const hn::ScalableTag<double> d;
  const std::size_t n = hn::Lanes(d);
  auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, s6 = s0, s7 = s0;
  const auto add = [&](auto& sum, const T* from) HWY_ATTR {
    const auto x = load_double(d, from);
    sum = hn::MulAdd(x, x, sum);
  };
  for (std::int64_t row = 0; row < rows; ++row, values += square_lanes) {
    add(s0, values);
    add(s1, values + n);
    add(s2, values + 2 * n);
    add(s3, values + 3 * n);
    add(s4, values + 4 * n);
    add(s5, values + 5 * n);
    add(s6, values + 6 * n);
    add(s7, values + 7 * n);
  }
  hn::StoreU(s0, d, lanes);
  hn::StoreU(s1, d, lanes + n);
  hn::StoreU(s2, d, lanes + 2 * n);
  hn::StoreU(s3, d, lanes + 3 * n);
  hn::StoreU(s4, d, lanes + 4 * n);
  hn::StoreU(s5, d, lanes + 5 * n);
  hn::StoreU(s6, d, lanes + 6 * n);
  hn::StoreU(s7, d, lanes + 7 * n);
}

template <class T>
HWY_INLINE double square_sum(const T* values, std::int64_t count) {
  double lanes[square_lanes];
  const std::int64_t rows = count / square_lanes;
  const auto step = static_cast<std::int64_t>(8 * hn::Lanes(hn::ScalableTag<double>()));
  for (std::int64_t lane = 0; lane < square_lanes; lane += step) {
    square_columns(values + lane, rows, lanes + lane);
  }
  for (std::int64_t j = rows * square_lanes; j < count; ++j) {
    const auto x = static_cast<double>(to_float(values[j]));
    lanes[j - rows * square_lanes] += x * x;
  }
  double total = 0;
  for (double lane : lanes) total += lane;
  return total;
}

void square_sums_chunk(TensorView values, TensorView partials, std::int64_t block,
                       std::int64_t begin, std::int64_t end) {
  with_element(values.dtype, [&](auto* type) HWY_ATTR {
    const auto* from = values.as<const std::remove_pointer_t<decltype(type)>>();
    double* sums = partials.as<double>();
    for (std::int64_t i = begin; i < end; i += block) {
      sums[i / block] = square_sum(from + i, std::min(block, end - i));
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace strata::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace strata::cpu {
namespace {

HWY_EXPORT(cast_weight_chunk);
HWY_EXPORT(accumulate_chunk);
HWY_EXPORT(square_sums_chunk);

constexpr std::int64_t chunk_elements = 64 * 1024;

}  // namespace

void cast_weight(Parallel& parallel, TensorView master, TensorView weight) {
  ensure(master.dtype == DType::f32 && master.count() == weight.count());
  parallel.for_chunks(master.count(), chunk_elements, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(cast_weight_chunk)(master, weight, begin, end);
  });
}

void accumulate(Parallel& parallel, TensorView source, TensorView target, Accumulate accumulate) {
  ensure(target.dtype == DType::f32 && target.count() == source.count());
  parallel.for_chunks(source.count(), chunk_elements, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(accumulate_chunk)(source, target, accumulate, begin, end);
  });
}

void square_sums(Parallel& parallel, TensorView values, TensorView partials) {
  ensure(partials.dtype == DType::f64 &&
         partials.count() == ceil_div(values.count(), norm_chunk_elements));
  static_assert(chunk_elements % norm_chunk_elements == 0);
  parallel.for_chunks(values.count(), chunk_elements, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(square_sums_chunk)(values, partials, norm_chunk_elements, begin, end);
  });
}

}  // namespace strata::cpu
#endif
