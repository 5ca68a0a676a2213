#include "kernels/ref/doubles.hpp"

#include "strata/core/dtype.hpp"

namespace strata::ref {

double element(TensorView tensor, std::int64_t i) {
  switch (tensor.dtype) {
    case DType::f64:
      return tensor.as<const double>()[i];
    case DType::f32:
      return static_cast<double>(tensor.as<const float>()[i]);
    case DType::bf16:
      return static_cast<double>(to_float(tensor.as<const bfloat16>()[i]));
    default:
      ensure(false);
  }
  return 0;
}

void set_element(TensorView tensor, std::int64_t i, double value) {
  switch (tensor.dtype) {
    case DType::f64:
      tensor.as<double>()[i] = value;
      return;
    case DType::f32:
      tensor.as<float>()[i] = static_cast<float>(value);
      return;
    case DType::bf16:
      tensor.as<bfloat16>()[i] = to_bfloat16(static_cast<float>(value));
      return;
    default:
      ensure(false);
  }
}

Doubles read(TensorView tensor) {
  Doubles values(static_cast<std::size_t>(tensor.count()));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = element(tensor, static_cast<std::int64_t>(i));
  return values;
}

void write(const Doubles& values, TensorView tensor) {
  ensure(tensor.count() == static_cast<std::int64_t>(values.size()));
  for (std::size_t i = 0; i < values.size(); ++i)
    set_element(tensor, static_cast<std::int64_t>(i), values[i]);
}

}  // namespace strata::ref
