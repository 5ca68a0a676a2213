#pragma once
// A tensor's elements as a vector of double, and back, whatever the storage (f64, f32 or bf16): the
// reference computes on copies, so that its loops read like the formulas and aliasing cannot
// matter.

#include <vector>

#include "strata/core/tensor_view.hpp"

namespace strata::ref {

using Doubles = std::vector<double>;

Doubles read(TensorView tensor);
void write(const Doubles& values, TensorView tensor);  // Rounds to nearest even.
double element(TensorView tensor, std::int64_t i);
void set_element(TensorView tensor, std::int64_t i, double value);

}  // namespace strata::ref
