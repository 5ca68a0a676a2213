#include "kernels/cpu/update.hpp"

#include "kernels/common/update_checks.hpp"
#include "kernels/cpu/ieee_environment.hpp"
#include "kernels/cpu/parallel.hpp"

namespace strata::cpu {
namespace {

// Small enough to balance a tile over many cores, large enough to keep the prefetchers running.
constexpr std::int64_t chunk_elements = 64 * 1024;
static_assert(chunk_elements % q8_block_elements == 0);

using Chunk = void (*)(const UpdatePass& pass, std::int64_t begin, std::int64_t end);

Chunk chunk_of(UpdateRule rule) {
  switch (rule) {
    case UpdateRule::adamw:
      return adamw_chunk;
    case UpdateRule::adam:
      return adam_chunk;
    case UpdateRule::sgd:
      return sgd_chunk;
    case UpdateRule::lion:
      return lion_chunk;
  }
  return nullptr;
}

}  // namespace

void update(Parallel& parallel, const UpdateArgs& args) {
  const IeeeEnvironment for_factors;
  check_update(args);
  const UpdateFactors factors = update_factors(args);
  const UpdatePass pass{args, factors, without_decay(factors), UpdateRandom(args)};
  const Chunk chunk = chunk_of(args.rule);
  parallel.for_chunks(args.master.count(), chunk_elements,
                      [&](std::int64_t begin, std::int64_t end) {
                        const IeeeEnvironment for_elements;
                        chunk(pass, begin, end);
                      });
}

}  // namespace strata::cpu
