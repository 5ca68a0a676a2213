#include "kernels/cpu/update.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/update_lion.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "kernels/cpu/update_frame-inl.h"

HWY_BEFORE_NAMESPACE();
namespace strata::cpu {
namespace HWY_NAMESPACE {

void lion_range(const UpdatePass& pass, std::int64_t begin, std::int64_t end) {
  update_chunk<LionRule>(pass, begin, end);
}

}  // namespace HWY_NAMESPACE
}  // namespace strata::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace strata::cpu {
namespace {

HWY_EXPORT(lion_range);

}  // namespace

void lion_chunk(const UpdatePass& pass, std::int64_t begin, std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(lion_range)(pass, begin, end);
}

}  // namespace strata::cpu
#endif
