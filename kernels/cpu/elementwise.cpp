#include "kernels/cpu/elementwise.hpp"

#include "kernels/cpu/parallel.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "kernels/cpu/elements-inl.h"

HWY_BEFORE_NAMESPACE();
namespace strata::cpu {
namespace HWY_NAMESPACE {

void add_chunk(TensorView a, TensorView b, TensorView out, std::int64_t begin, std::int64_t end) {
  with_element(out.dtype, [&](auto* type) HWY_ATTR {
    using T = std::remove_pointer_t<decltype(type)>;
    const T* left = a.as<const T>();
    const T* right = b.as<const T>();
    T* to = out.as<T>();
    for_each_vector(begin, end, [&](auto d, std::int64_t i) HWY_ATTR {
      store(d, hn::Add(load(d, left + i), load(d, right + i)), to + i);
    });
  });
}

void cast_chunk(TensorView source, TensorView target, std::int64_t begin, std::int64_t end) {
  with_element(source.dtype, [&](auto* source_type) HWY_ATTR {
    const auto* from = source.as<const std::remove_pointer_t<decltype(source_type)>>();
    with_element(target.dtype, [&](auto* target_type) HWY_ATTR {
      auto* to = target.as<std::remove_pointer_t<decltype(target_type)>>();
      for_each_vector(begin, end, [&](auto d, std::int64_t i) HWY_ATTR {
        store(d, load(d, from + i), to + i);
      });
    });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace strata::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace strata::cpu {
namespace {

HWY_EXPORT(add_chunk);
HWY_EXPORT(cast_chunk);

constexpr std::int64_t chunk_elements = 64 * 1024;

}  // namespace

void add(Parallel& parallel, TensorView a, TensorView b, TensorView out) {
  ensure(a.count() == out.count() && b.count() == out.count() && a.dtype == out.dtype &&
         b.dtype == out.dtype);
  parallel.for_chunks(out.count(), chunk_elements, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(add_chunk)(a, b, out, begin, end);
  });
}

void cast(Parallel& parallel, TensorView source, TensorView target) {
  ensure(source.count() == target.count());
  parallel.for_chunks(source.count(), chunk_elements, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(cast_chunk)(source, target, begin, end);
  });
}

void sum(TensorView values_t, TensorView total) {
  ensure(values_t.dtype == DType::f32 && total.dtype == DType::f64 && total.count() == 1);
  const float* values = values_t.as<const float>();
  double result = 0;
  for (std::int64_t t = 0; t < values_t.count(); ++t) result += static_cast<double>(values[t]);
  *total.as<double>() = result;
}

}  // namespace strata::cpu
#endif
