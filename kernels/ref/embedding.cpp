#include "kernels/ref/doubles.hpp"
#include "kernels/ref/ref_ops.hpp"

namespace strata::ref {

void embedding_forward(TensorView tokens_t, TensorView table_vh, TensorView out_th) {
  const std::int64_t h = table_vh.dim(1);
  ensure(out_th.count() == tokens_t.count() * h);
  for (std::int64_t t = 0; t < tokens_t.count(); ++t) {
    const std::int64_t token = tokens_t.as<const std::int32_t>()[t];
    ensure(token >= 0 && token < table_vh.dim(0));
    for (std::int64_t j = 0; j < h; ++j)
      set_element(out_th, t * h + j, element(table_vh, token * h + j));
  }
}

void embedding_backward(TensorView tokens_t, TensorView dout_th, TensorView dtable_vh) {
  const std::int64_t h = dtable_vh.dim(1);
  ensure(dout_th.count() == tokens_t.count() * h);
  Doubles dtable(static_cast<std::size_t>(dtable_vh.count()), 0.0);
  for (std::int64_t t = 0; t < tokens_t.count(); ++t) {
    const std::int64_t token = tokens_t.as<const std::int32_t>()[t];
    ensure(token >= 0 && token < dtable_vh.dim(0));
    for (std::int64_t j = 0; j < h; ++j) {
      dtable[static_cast<std::size_t>(token * h + j)] += element(dout_th, t * h + j);
    }
  }
  write(dtable, dtable_vh);
}

}  // namespace strata::ref
