#pragma once
// What engines ask of CrossEntropyArgs.

#include "strata/core/error.hpp"
#include "strata/kernels/kernels.hpp"

namespace strata {

inline void check_cross_entropy(const CrossEntropyArgs& args) {
  const std::int64_t c = args.logits_cv.dim(0);
  ensure(args.logits_cv.dtype == DType::f32 && args.logits_cv.dim(1) > 0);
  ensure(args.labels_c.dtype == DType::i32 && args.labels_c.count() == c);
  ensure(args.losses_c.dtype == DType::f32 && args.losses_c.count() == c);
  if (args.dlogits_cv.empty()) return;
  ensure(args.dlogits_cv.count() == args.logits_cv.count());
  ensure(args.dlogits_cv.data != args.logits_cv.data || args.dlogits_cv.dtype == DType::f32);
}

}  // namespace strata
