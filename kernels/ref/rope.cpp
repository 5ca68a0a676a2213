#include <cmath>

#include "kernels/common/activation_formulas.hpp"
#include "kernels/ref/doubles.hpp"
#include "kernels/ref/ref_ops.hpp"

namespace strata::ref {
namespace {

// The pair (j, j + d/2) of one head, turned by an angle.
void turn(TensorView x, std::int64_t first, std::int64_t second, double cosine, double sine) {
  const TurnedPair<double> pair = turned(element(x, first), element(x, second), cosine, sine);
  set_element(x, first, pair.first);
  set_element(x, second, pair.second);
}

}  // namespace

void rope(TensorView x_thd, TensorView document_start_t, std::span<const float> inverse_frequencies,
          Rotation rotation) {
  const std::int64_t num_heads = x_thd.dim(1), d = x_thd.dim(2), half = d / 2;
  ensure(static_cast<std::int64_t>(inverse_frequencies.size()) == half &&
         document_start_t.count() == x_thd.dim(0));
  for (std::int64_t t = 0; t < x_thd.dim(0); ++t) {
    const auto position = static_cast<float>(t - document_start_t.as<const std::int32_t>()[t]);
    for (std::int64_t j = 0; j < half; ++j) {
      // In fp32, as the models were trained.
      const float angle = position * inverse_frequencies[static_cast<std::size_t>(j)];
      const float cosine = std::cos(angle), sine = std::sin(angle);
      const double signed_sine = static_cast<double>(rotation == Rotation::forward ? sine : -sine);
      for (std::int64_t head = 0; head < num_heads; ++head) {
        const std::int64_t first = (t * num_heads + head) * d + j;
        turn(x_thd, first, first + half, static_cast<double>(cosine), signed_sine);
      }
    }
  }
}

}  // namespace strata::ref
