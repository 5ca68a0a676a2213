// One optimizer pass over elements [begin, end) of a tile, for any rule and layout. Included once
// per SIMD target.

#if defined(STRATA_KERNELS_CPU_UPDATE_FRAME_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STRATA_KERNELS_CPU_UPDATE_FRAME_INL_H_
#undef STRATA_KERNELS_CPU_UPDATE_FRAME_INL_H_
#else
#define STRATA_KERNELS_CPU_UPDATE_FRAME_INL_H_
#endif

#include <algorithm>
#include <atomic>
#include <cmath>
#include <type_traits>

#include "hwy/cache_control.h"
#include "kernels/common/decay_runs.hpp"
#include "kernels/common/update_checks.hpp"
#include "kernels/cpu/block_q8-inl.h"
#include "kernels/cpu/update.hpp"
#include "kernels/cpu/update_rules-inl.h"
#include "kernels/cpu/update_state-inl.h"

HWY_BEFORE_NAMESPACE();
namespace strata::cpu {
namespace HWY_NAMESPACE {

// What one run of elements with one decay works on. Moments are indexed from `first_moment`, the
// random chunk from `first_random`, everything else from the tile's first element.
template <class G, class Master, class M>
struct UpdateRun {
  const UpdateFactors& factors;
  const G* gradient;
  Master master;
  M* moment1;
  M* moment2;
  std::int64_t first_moment;
  std::uint32_t chunk_key;
  std::int64_t first_random;
};

// The magnitudes' bits of the gradients seen: at least those of infinity if one was not finite.
template <class D>
HWY_INLINE void note_gradient(D, hn::Vec<D> gradient, hn::Vec<hn::RebindToSigned<D>>& largest) {
  const hn::RebindToSigned<D> d32;
  largest = hn::Max(largest, hn::BitCast(d32, hn::Abs(gradient)));
}

// The new p of the vector of elements from i on; its moments are written.
template <class Rule, class G, class Master, class M, class D>
HWY_INLINE hn::Vec<D> update_vector(D d, const UpdateRun<G, Master, M>& run, std::int64_t i,
                                    hn::Vec<hn::RebindToSigned<D>>& largest) {
  const auto gradient = load(d, run.gradient + i);
  note_gradient(d, gradient, largest);
  const auto g = hn::Mul(gradient, hn::Set(d, run.factors.gradient_scale));
  const std::int64_t at = i - run.first_moment;
  auto p = run.master.read(d, i);
  auto m = load(d, run.moment1 + at);
  auto v = m;
  if constexpr (Rule::two_moments) v = load(d, run.moment2 + at);
  Rule::apply(d, run.factors, g, p, m, v);
  store_moments<Rule>(d, m, v, run.chunk_key, static_cast<std::uint32_t>(i - run.first_random),
                      run.moment1 + at, Rule::two_moments ? run.moment2 + at : nullptr);
  return p;
}

// What a pair of vectors some iterations on will read: with five streams in flight the processor's
// own prefetchers and the instructions it looks ahead do not keep up.
template <class Rule, class G, class Master, class M>
HWY_INLINE void prefetch_pair(const UpdateRun<G, Master, M>& run, std::int64_t i) {
  const std::int64_t at = i - run.first_moment;
  prefetch_ahead(run.gradient + i);
  run.master.prefetch(i);
  prefetch_ahead(run.moment1 + at);
  if constexpr (Rule::two_moments) prefetch_ahead(run.moment2 + at);
}

template <class Rule, class G, class Master, class M>
HWY_INLINE void update_single(const UpdateRun<G, Master, M>& run, std::int64_t i,
                              std::int32_t& largest) {
  const OneTag d;
  const hn::RebindToSigned<OneTag> d32;
  auto seen = hn::Set(d32, largest);
  run.master.write(d, update_vector<Rule>(d, run, i, seen), i);
  largest = hn::GetLane(seen);
}

// Pairs of vectors from where the weight may be streamed, single elements around them. Returns
// whether all gradients were finite.
template <class Rule, class G, class Master, class M>
HWY_INLINE bool update_run(const UpdateRun<G, Master, M>& run, std::int64_t begin,
                           std::int64_t end) {
  const FloatTag d;
  const hn::RebindToSigned<FloatTag> d32;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto seen = hn::Zero(d32);
  std::int32_t seen_single = 0;
  std::int64_t i = begin;
  for (const auto head = std::min(end, run.master.streamable(d, begin)); i < head; ++i)
    update_single<Rule>(run, i, seen_single);
  for (; i + 2 * lanes <= end; i += 2 * lanes) {
    prefetch_pair<Rule>(run, i);
    const auto p = update_vector<Rule>(d, run, i, seen);
    const auto next = update_vector<Rule>(d, run, i + lanes, seen);
    run.master.write(d, p, next, i);
  }
  for (; i < end; ++i) update_single<Rule>(run, i, seen_single);
  return std::max(seen_single, hn::GetLane(hn::MaxOfLanes(d32, seen))) < 0x7f800000;
}

template <class G>
void count_non_finite(const UpdateArgs& args, std::int64_t begin, std::int64_t end) {
  if (args.non_finite.empty()) return;
  const G* gradient = args.gradient.as<const G>();
  const auto count = std::count_if(gradient + begin, gradient + end,
                                   [](G value) { return !std::isfinite(to_float(value)); });
  std::atomic_ref(*args.non_finite.as<double>()).fetch_add(static_cast<double>(count));
}

// The runs of [begin, end), which lies in one random chunk.
template <class Rule, class G, class Master, class M>
HWY_INLINE void update_runs(const UpdatePass& pass, DecayRuns& decays, UpdateRun<G, Master, M> run,
                            std::int64_t begin, std::int64_t end) {
  const std::int64_t first = pass.args.first;
  bool finite = true;
  decays.for_each(first + begin, first + end,
                  [&](std::int64_t from, std::int64_t to, Decay decay) HWY_ATTR {
                    UpdateRun<G, Master, M> part{decay == Decay::yes ? pass.decayed : pass.plain,
                                                 run.gradient,
                                                 run.master,
                                                 run.moment1,
                                                 run.moment2,
                                                 run.first_moment,
                                                 run.chunk_key,
                                                 run.first_random};
                    finite &= update_run<Rule>(part, from - first, to - first);
                  });
  if (!finite) count_non_finite<G>(pass.args, begin, end);
}

// A block of 8-bit moments on its way through the first-level cache, decoded.
struct DecodedBlock {
  alignas(64) float m[q8_block_elements];
  alignas(64) float v[q8_block_elements];
  std::uint32_t largest1, largest2;  // bits of the largest magnitudes
};

// Any block: decoded, updated run by run.
template <class Rule, class G, class Master>
HWY_INLINE void update_decoded(const UpdatePass& pass, DecayRuns& decays, const Q8Block& block1,
                               const Q8Block& block2, std::int64_t at, std::int64_t count,
                               DecodedBlock& decoded) {
  decode_block<SignedMap>(block1, count, decoded.m);
  if constexpr (Rule::two_moments) decode_block<UnsignedMap>(block2, count, decoded.v);
  update_runs<Rule>(
      pass, decays,
      UpdateRun<G, Master, float>{pass.plain, pass.args.gradient.as<const G>(), Master(pass.args),
                                  decoded.m, decoded.v, at, 0, 0},
      at, at + count);
  decoded.largest1 = largest_bits<SignedMap>(decoded.m, count);
  if constexpr (Rule::two_moments)
    decoded.largest2 = largest_bits<UnsignedMap>(decoded.v, count);
}

// A whole block of one decay: decoded, updated and searched for its largest magnitudes in one
// loop, which is what the speed of 8-bit moments hangs on. Returns whether all gradients were
// finite.
template <class Rule, class G, class Master>
HWY_INLINE bool update_whole_block(const UpdateFactors& factors, const G* gradient,
                                   const Master& master, const Q8Block& block1,
                                   const Q8Block& block2, std::int64_t at, DecodedBlock& decoded) {
  const FloatTag d;
  const hn::RebindToSigned<FloatTag> di32;
  const hn::RebindToUnsigned<FloatTag> du32;
  const float scale1 = *block1.scale;
  const float scale2 = Rule::two_moments ? *block2.scale : 0;
  auto seen = hn::Zero(di32);
  auto largest1 = hn::Zero(du32), largest2 = largest1;
  const auto updated = [&](std::int64_t i) HWY_ATTR {
    const auto raw = load(d, gradient + at + i);
    note_gradient(d, raw, seen);
    const auto g = hn::Mul(raw, hn::Set(d, factors.gradient_scale));
    auto p = master.read(d, at + i);
    auto m = decode_vector<SignedMap>(d, block1, scale1, i);
    auto v = m;
    if constexpr (Rule::two_moments) v = decode_vector<UnsignedMap>(d, block2, scale2, i);
    Rule::apply(d, factors, g, p, m, v);
    hn::Store(m, d, decoded.m + i);
    note_largest<SignedMap>(d, m, largest1);
    if constexpr (Rule::two_moments) {
      hn::Store(v, d, decoded.v + i);
      note_largest<UnsignedMap>(d, v, largest2);
    }
    return p;
  };
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = 0; i < q8_block_elements; i += 2 * lanes) {
    const auto p = updated(i);
    master.write(d, p, updated(i + lanes), at + i);
  }
  decoded.largest1 = hn::GetLane(hn::MaxOfLanes(du32, largest1));
  decoded.largest2 = hn::GetLane(hn::MaxOfLanes(du32, largest2));
  return hn::GetLane(hn::MaxOfLanes(di32, seen)) < 0x7f800000;
}

template <class Rule, class G, class Master>
HWY_INLINE void update_blocks(const UpdatePass& pass, DecayRuns& decays, std::uint32_t chunk_key,
                              std::int64_t first_random, std::int64_t begin, std::int64_t end) {
  const UpdateArgs& args = pass.args;
  const Master master(args);
  const FloatTag d;
  DecodedBlock decoded;
  for (std::int64_t at = begin; at < end; at += q8_block_elements) {
    const std::int64_t count = std::min(q8_block_elements, end - at);
    const Q8Block block1(args.moment1, at);
    const Q8Block block2(Rule::two_moments ? args.moment2 : args.moment1, at);
    const auto decay = decays.of_all(args.first + at, args.first + at + count);
    if (decay && count == q8_block_elements && master.streamable(d, at) == at) {
      const bool finite = update_whole_block<Rule>(
          *decay == Decay::yes ? pass.decayed : pass.plain, args.gradient.as<const G>(), master,
          block1, block2, at, decoded);
      if (!finite) count_non_finite<G>(args, at, at + count);
    } else {
      update_decoded<Rule, G, Master>(pass, decays, block1, block2, at, count, decoded);
    }
    encode_blocks<Rule>(decoded.m, decoded.v, count, decoded.largest1, decoded.largest2, chunk_key,
                        static_cast<std::uint32_t>(at - first_random), block1, block2);
  }
}

// Calls f(chunk key, first element of the chunk within the tile, begin, end) for the random chunks
// that make up [begin, end). The first element may lie before the tile.
template <class F>
HWY_INLINE void for_each_random_chunk(const UpdatePass& pass, std::int64_t begin, std::int64_t end,
                                      F f) {
  while (begin < end) {
    const std::int64_t chunk = (pass.args.first + begin) / random_chunk_elements;
    const std::int64_t first = chunk * random_chunk_elements - pass.args.first;
    const std::int64_t chunk_end = std::min(end, first + random_chunk_elements);
    f(pass.random.chunk_key(chunk), first, begin, chunk_end);
    begin = chunk_end;
  }
}

template <class Rule, class G, class Master>
void update_range(const UpdatePass& pass, std::int64_t begin, std::int64_t end) {
  const UpdateArgs& args = pass.args;
  DecayRuns decays(args.decays, args.first + begin);
  const auto direct = [&](auto* type, std::uint32_t key, std::int64_t first, std::int64_t from,
                          std::int64_t to) HWY_ATTR {
    using M = std::remove_pointer_t<decltype(type)>;
    update_runs<Rule>(
        pass, decays,
        UpdateRun<G, Master, M>{pass.plain, args.gradient.as<const G>(), Master(args),
                                args.moment1.as<M>(), args.moment2.as<M>(), 0, key, first},
        from, to);
  };
  for_each_random_chunk(
      pass, begin, end,
      [&](std::uint32_t key, std::int64_t first, std::int64_t from, std::int64_t to) HWY_ATTR {
        if (args.moment1.dtype == DType::f32) {
          direct(static_cast<float*>(nullptr), key, first, from, to);
        } else if (args.moment1.dtype == DType::bf16) {
          direct(static_cast<bfloat16*>(nullptr), key, first, from, to);
        } else {
          update_blocks<Rule, G, Master>(pass, decays, key, first, from, to);
        }
      });
  hwy::FlushStream();  // Streamed weights must be seen by whoever learns that the pass is done.
}

template <class Rule>
HWY_INLINE void update_chunk(const UpdatePass& pass, std::int64_t begin, std::int64_t end) {
  with_element(pass.args.gradient.dtype, [&](auto* type) HWY_ATTR {
    using G = std::remove_pointer_t<decltype(type)>;
    if (is_split(pass.args)) {
      update_range<Rule, G, SplitMaster>(pass, begin, end);
    } else {
      update_range<Rule, G, WholeMaster>(pass, begin, end);
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace strata::cpu
HWY_AFTER_NAMESPACE();

#endif
