#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/common/adamw_factors.hpp"
#include "kernels/ref/ref_ops.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/dtype.hpp"

namespace strata::ref {
namespace {

float read_float(TensorView tensor, std::int64_t i) {
  ensure(tensor.dtype == DType::f32 || tensor.dtype == DType::bf16);
  return tensor.dtype == DType::f32 ? tensor.as<const float>()[i]
                                    : to_float(tensor.as<const bfloat16>()[i]);
}

void write_weight(TensorView weight, std::int64_t i, float master) {
  ensure(weight.dtype == DType::f32 || weight.dtype == DType::bf16);
  if (weight.dtype == DType::f32) {
    weight.as<float>()[i] = master;
  } else {
    weight.as<bfloat16>()[i] = weight_to_bfloat16(master);
  }
}

double square_sum(TensorView values, std::int64_t begin, std::int64_t end) {
  std::array<double, 64> lanes{};
  for (std::int64_t j = begin; j < end; ++j) {
    const auto value = static_cast<double>(read_float(values, j));
    lanes[static_cast<std::size_t>((j - begin) % 64)] += value * value;
  }
  double total = 0;
  for (double lane : lanes) total += lane;
  return total;
}

}  // namespace

void cast_weight(TensorView master, TensorView weight) {
  ensure(master.count() == weight.count());
  for (std::int64_t i = 0; i < master.count(); ++i) write_weight(weight, i, read_float(master, i));
}

void accumulate(TensorView source, TensorView target, Accumulate accumulate) {
  ensure(target.dtype == DType::f32 && source.count() == target.count());
  float* to = target.as<float>();
  for (std::int64_t i = 0; i < target.count(); ++i) {
    to[i] = accumulate == Accumulate::yes ? to[i] + read_float(source, i) : read_float(source, i);
  }
}

void square_sums(TensorView values, TensorView partials) {
  constexpr std::int64_t block = 4096;
  ensure(partials.dtype == DType::f64 && partials.count() == ceil_div(values.count(), block));
  for (std::int64_t i = 0; i < partials.count(); ++i) {
    partials.as<double>()[i] =
        square_sum(values, i * block, std::min(values.count(), (i + 1) * block));
  }
}

void adamw(const AdamWArgs& args) {
  const AdamWFactors f = adamw_factors(args);
  const std::int64_t count = args.master.count();
  ensure(args.gradient.count() == count && args.moment1.count() == count &&
         args.moment2.count() == count);
  ensure(args.weight.empty() || args.weight.count() == count);
  for (std::int64_t i = 0; i < count; ++i) {
    float& p = args.master.as<float>()[i];
    float& m = args.moment1.as<float>()[i];
    float& v = args.moment2.as<float>()[i];
    const float g = read_float(args.gradient, i) * f.gradient_scale;
    p = p * f.decay;
    m = m + (g - m) * f.beta1_complement;
    v = v * f.beta2 + (g * g) * f.beta2_complement;
    p = p - f.step_size * (m / (std::sqrt(v) / f.bias_correction2_sqrt + f.epsilon));
    if (!args.weight.empty()) write_weight(args.weight, i, p);
  }
}

}  // namespace strata::ref
