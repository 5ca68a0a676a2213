#include "kernels/cpu/update.hpp"

#include "kernels/common/update_checks.hpp"
#include "kernels/cpu/parallel.hpp"
#include "strata/core/ieee_environment.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/update.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "kernels/cpu/update_frame-inl.h"

HWY_BEFORE_NAMESPACE();
namespace strata::cpu {
namespace HWY_NAMESPACE {

void update_elements(const UpdatePass& pass, std::int64_t begin, std::int64_t end) {
  switch (pass.args.rule) {
    case UpdateRule::adamw:
      return update_chunk<AdamWRule>(pass, begin, end);
    case UpdateRule::adam:
      return update_chunk<AdamRule>(pass, begin, end);
    case UpdateRule::sgd:
      return update_chunk<SgdRule>(pass, begin, end);
    case UpdateRule::lion:
      return update_chunk<LionRule>(pass, begin, end);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace strata::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace strata::cpu {
namespace {

HWY_EXPORT(update_elements);

// Small enough to balance a tile over many cores, large enough to keep the prefetchers running.
constexpr std::int64_t chunk_elements = 64 * 1024;
static_assert(chunk_elements % q8_block_elements == 0);

}  // namespace

void update(Parallel& parallel, const UpdateArgs& args) {
  const IeeeEnvironment for_factors;
  check_update(args);
  const UpdateFactors factors = update_factors(args);
  const UpdatePass pass{args, factors, without_decay(factors), UpdateRandom(args)};
  parallel.for_chunks(args.master.count(), chunk_elements,
                      [&](std::int64_t begin, std::int64_t end) {
                        const IeeeEnvironment for_elements;
                        HWY_DYNAMIC_DISPATCH(update_elements)(pass, begin, end);
                      });
}

}  // namespace strata::cpu
#endif
