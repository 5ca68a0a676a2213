#include "kernels/cpu/swiglu.hpp"

#include "kernels/cpu/parallel.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/swiglu.cpp"
// clang-format off: what is compiled once per target comes after foreach_target.h.
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "hwy/contrib/math/math-inl.h"
#include "kernels/cpu/elements-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace strata::cpu {
namespace HWY_NAMESPACE {

template <class D, class V>
HWY_INLINE V sigmoid(D d, V x) {
  const auto one = hn::Set(d, 1.0f);
  // Bounded because Exp is not valid far above; e^88 is the last finite one.
  return hn::Div(one, hn::Add(one, hn::Exp(d, hn::Min(hn::Neg(x), hn::Set(d, 88.0f)))));
}

void swiglu_forward_chunk(TensorView gate_tf, TensorView up_tf, TensorView y_tf, std::int64_t begin,
                          std::int64_t end) {
  with_element(y_tf.dtype, [&](auto* type) HWY_ATTR {
    using T = std::remove_pointer_t<decltype(type)>;
    const T* gate = gate_tf.as<const T>();
    const T* up = up_tf.as<const T>();
    T* y = y_tf.as<T>();
    for_each_vector(begin, end, [&](auto d, std::int64_t i) HWY_ATTR {
      const auto g = load(d, gate + i);
      store(d, hn::Mul(hn::Mul(g, sigmoid(d, g)), load(d, up + i)), y + i);
    });
  });
}

// d silu(g)/dg = s (1 + g (1 - s)), s = sigmoid(g).
template <class D, class T>
HWY_INLINE void swiglu_backward_vector(D d, const T* dy, const T* gate, const T* up, T* dgate,
                                       T* dup) {
  const auto one = hn::Set(d, 1.0f);
  const auto g = load(d, gate);
  const auto s = sigmoid(d, g);
  const auto dy_s = hn::Mul(load(d, dy), s);
  const auto slope = hn::MulAdd(g, hn::Sub(one, s), one);
  const auto dg = hn::Mul(hn::Mul(dy_s, slope), load(d, up));
  store(d, dg, dgate);
  store(d, hn::Mul(dy_s, g), dup);
}

void swiglu_backward_chunk(TensorView dy_tf, TensorView gate_tf, TensorView up_tf,
                           TensorView dgate_tf, TensorView dup_tf, std::int64_t begin,
                           std::int64_t end) {
  with_element(dy_tf.dtype, [&](auto* type) HWY_ATTR {
    using T = std::remove_pointer_t<decltype(type)>;
    for_each_vector(begin, end, [&](auto d, std::int64_t i) HWY_ATTR {
      swiglu_backward_vector(d, dy_tf.as<const T>() + i, gate_tf.as<const T>() + i,
                             up_tf.as<const T>() + i, dgate_tf.as<T>() + i, dup_tf.as<T>() + i);
    });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace strata::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace strata::cpu {
namespace {

HWY_EXPORT(swiglu_forward_chunk);
HWY_EXPORT(swiglu_backward_chunk);

constexpr std::int64_t chunk_elements = 16 * 1024;

void check_like(TensorView tensor, TensorView other) {
  ensure(tensor.dtype == other.dtype && tensor.count() == other.count());
}

}  // namespace

void swiglu_forward(Parallel& parallel, TensorView gate_tf, TensorView up_tf, TensorView y_tf) {
  check_like(gate_tf, y_tf);
  check_like(up_tf, y_tf);
  parallel.for_chunks(y_tf.count(), chunk_elements, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(swiglu_forward_chunk)(gate_tf, up_tf, y_tf, begin, end);
  });
}

void swiglu_backward(Parallel& parallel, TensorView dy_tf, TensorView gate_tf, TensorView up_tf,
                     TensorView dgate_tf, TensorView dup_tf) {
  for (const TensorView& tensor : {gate_tf, up_tf, dgate_tf, dup_tf}) check_like(tensor, dy_tf);
  parallel.for_chunks(dy_tf.count(), chunk_elements, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(swiglu_backward_chunk)
    (dy_tf, gate_tf, up_tf, dgate_tf, dup_tf, begin, end);
  });
}

}  // namespace strata::cpu
#endif
