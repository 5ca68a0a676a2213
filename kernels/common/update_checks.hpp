#pragma once
// What every engine asks of UpdateArgs.

#include "strata/kernels/update.hpp"

namespace strata {

inline bool is_split(const UpdateArgs& args) { return args.master.dtype == DType::u16; }

inline void check_moment(const UpdateArgs& args, const TensorView& moment) {
  ensure(moment.count() == args.master.count() && moment.dtype == args.moment1.dtype);
  ensure(moment.dtype == DType::f32 || moment.dtype == DType::bf16 || moment.dtype == DType::q8);
  ensure(moment.dtype != DType::q8 || args.first % q8_block_elements == 0);
}

inline void check_update(const UpdateArgs& args) {
  const std::int64_t count = args.master.count();
  ensure(args.gradient.count() == count && args.first >= 0 && args.step >= 1);
  ensure(args.gradient.dtype == DType::f32 || args.gradient.dtype == DType::bf16);
  check_moment(args, args.moment1);
  if (has_moment2(args.rule)) check_moment(args, args.moment2);
  ensure(args.weight.empty() || args.weight.count() == count);
  ensure(args.master.dtype == DType::f32 || is_split(args));
  ensure(!is_split(args) || (!args.weight.empty() && args.weight.dtype == DType::bf16));
  ensure(args.weight.empty() || args.weight.dtype == DType::f32 ||
         args.weight.dtype == DType::bf16);
  ensure(args.non_finite.empty() || args.non_finite.dtype == DType::f64);
}

}  // namespace strata
