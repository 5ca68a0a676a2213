#include "kernels/cpu/widen.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/widen.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/elements-inl.h"

HWY_BEFORE_NAMESPACE();
namespace strata::cpu {
namespace HWY_NAMESPACE {

template <class S, class T>
HWY_INLINE void convert_rows(Rows<const S> source, Rows<T> target, std::int64_t rows,
                             std::int64_t columns) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const S* from = source.data + row * source.stride;
    T* to = target.data + row * target.stride;
    for_each_vector(0, columns,
                    [&](auto d, std::int64_t i) HWY_ATTR { store(d, load(d, from + i), to + i); });
  }
}

void widen_rows(Rows<const bfloat16> source, Rows<float> target, std::int64_t rows,
                std::int64_t columns) {
  convert_rows(source, target, rows, columns);
}
void narrow_rows(Rows<const float> source, Rows<bfloat16> target, std::int64_t rows,
                 std::int64_t columns) {
  convert_rows(source, target, rows, columns);
}

}  // namespace HWY_NAMESPACE
}  // namespace strata::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace strata::cpu {
namespace {

HWY_EXPORT(widen_rows);
HWY_EXPORT(narrow_rows);

}  // namespace

void widen(Rows<const bfloat16> source, Rows<float> target, std::int64_t rows,
           std::int64_t columns) {
  HWY_DYNAMIC_DISPATCH(widen_rows)(source, target, rows, columns);
}
void narrow(Rows<const float> source, Rows<bfloat16> target, std::int64_t rows,
            std::int64_t columns) {
  HWY_DYNAMIC_DISPATCH(narrow_rows)(source, target, rows, columns);
}

}  // namespace strata::cpu
#endif
