#pragma once
// SwiGLU and the rotation of RoPE, element by element, for the reference (F is double) and for GPUs
// (float). constexpr, so that they run on a device.

#include <cmath>

namespace strata {

template <class F>
constexpr F sigmoid(F x) {
  return F{1} / (F{1} + std::exp(-x));
}

template <class F>
constexpr F swiglu(F gate, F up) {
  return gate * sigmoid(gate) * up;
}

template <class F>
struct SwigluGradient {
  F gate, up;
};

template <class F>
constexpr SwigluGradient<F> swiglu_gradient(F dy, F gate, F up) {
  const F s = sigmoid(gate);
  return {dy * up * s * (F{1} + gate * (F{1} - s)), dy * gate * s};
}

template <class F>
struct TurnedPair {
  F first, second;
};

template <class F>
constexpr TurnedPair<F> turned(F first, F second, F cosine, F sine) {
  return {first * cosine - second * sine, second * cosine + first * sine};
}

}  // namespace strata
