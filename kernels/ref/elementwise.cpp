#include "kernels/ref/doubles.hpp"
#include "kernels/ref/ref_ops.hpp"

namespace strata::ref {

void add(TensorView a, TensorView b, TensorView out) {
  ensure(a.count() == out.count() && b.count() == out.count());
  for (std::int64_t i = 0; i < out.count(); ++i) set_element(out, i, element(a, i) + element(b, i));
}

void cast(TensorView source, TensorView target) {
  ensure(source.count() == target.count());
  for (std::int64_t i = 0; i < target.count(); ++i) set_element(target, i, element(source, i));
}

void sum(TensorView values_t, TensorView total) {
  ensure(total.count() == 1);
  double result = 0;
  for (double value : read(values_t)) result += value;
  set_element(total, 0, result);
}

}  // namespace strata::ref
