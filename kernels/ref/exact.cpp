#include <algorithm>
#include <array>

#include "kernels/ref/ref_elements.hpp"
#include "kernels/ref/ref_ops.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/dtype.hpp"

namespace strata::ref {
namespace {

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

}  // namespace strata::ref
