#pragma once
// The optimizer pass of Kernels::update on a device, bit for bit: one kernel for every rule, and
// for the layouts it is compiled for. A warp updates blocks of 256 elements, eight a lane, each
// read and written once, by accesses of 16 bytes where the tensors' addresses allow.

#include "kernels/common/update_formulas.hpp"
#include "kernels/cuda/launch_shape.hpp"
#include "kernels/cuda/update_pieces.hpp"
#include "kernels/cuda/update_state.cuh"

namespace strata::cuda {

template <class G, class Master, class Moment>
struct UpdateParameters {
  UpdateRule rule;
  bool two_moments;
  bool aligned;
  UpdateFactors factors;
  UpdateRandom random;
  std::int64_t first;  // the tile's, within its shard
  Global<const G> gradient;
  Master master;
  Moment moment1, moment2;
  Global<double> non_finite;  // may be empty
  UpdatePiece piece;
};

STRATA_DEVICE int count_non_finite(const Floats& gradient) {
  int count = 0;
  STRATA_UNROLL
  for (int i = 0; i < group_elements; ++i)
    count += magnitude_bits(gradient[i]) >= 0x7f800000u ? 1 : 0;
  return count;
}

// Exact in any order: the counts are whole numbers.
STRATA_DEVICE void add_count(const Global<double>& total, int count) {
  count = warp_sum(count);
  if (lane_index() == 0 && count > 0) total.atomic_add(0, count);
}

template <class P>
STRATA_DEVICE void update_span(const P& pass, const Span& span, const Floats& gradient, Floats& p,
                               Floats& m, Floats& v) {
  DecayCursor decay(pass.piece.decays, pass.first + span.first);
  STRATA_UNROLL
  for (int i = 0; i < group_elements; ++i) {
    if (i >= span.count) break;
    UpdateFactors factors = pass.factors;
    if (!decay.decays(pass.first + span.first + i)) factors = without_decay(factors);
    UpdateElement<float> e{p[i], m[i], v[i]};
    update_element(pass.rule, factors, gradient[i], e);
    p[i] = e.p;
    m[i] = e.m;
    v[i] = e.v;
  }
}

// The lanes of a warp come here together, some of the last block's with nothing to do.
template <class P>
STRATA_DEVICE void update_block(const P& pass, std::int64_t block) {
  const Span span = span_at(block + lane_index() * group_elements, pass.piece.end, pass.aligned);
  const Floats gradient = load_floats(pass.gradient, span);
  Floats p = pass.master.read(span), m = pass.moment1.read(span), v{};
  if (pass.two_moments) v = pass.moment2.read(span);
  update_span(pass, span, gradient, p, m, v);
  pass.master.write(span, p);
  RandomBits bits{};
  if constexpr (decltype(pass.moment1)::is_random)
    bits = random_bits_of(pass.random, pass.first + span.first);
  pass.moment1.write(span, m, bits);
  if (pass.two_moments) pass.moment2.write(span, v, bits);
  if (!pass.non_finite.empty()) add_count(pass.non_finite, count_non_finite(gradient));
}

// Blocks that a multiprocessor shall have room for: with registers for four, 8-bit moments spill.
template <class Moment>
inline constexpr int update_blocks_min = std::is_same_v<Moment, Q8Moment> ? 3 : 4;

template <class G, class Master, class Moment>
STRATA_KERNEL(256, update_blocks_min<Moment>)
update_kernel(STRATA_PARAMETER UpdateParameters<G, Master, Moment> pass) {
  const int warps = block_threads() / warp_threads;
  const std::int64_t warp = block_x() * warps + warp_index();
  const std::int64_t stride = grid_x() * warps * update_block_elements;
  for (std::int64_t block = pass.piece.begin + warp * update_block_elements; block < pass.piece.end;
       block += stride)
    update_block(pass, block);
}

// --- Host

inline bool is_aligned(const UpdateArgs& args) {
  return is_aligned(args.gradient) && is_aligned(args.master) && is_aligned(args.weight) &&
         is_aligned(args.moment1) && is_aligned(args.moment2);
}

template <class G, class Master, class Moment, class Launcher>
void launch_update_pieces(Launcher& launcher, const UpdateArgs& args) {
  const std::int64_t count = args.master.count();
  UpdateParameters<G, Master, Moment> pass{
      args.rule,
      has_moment2(args.rule),
      is_aligned(args),
      update_factors(args),
      UpdateRandom(args),
      args.first,
      Global<const G>(args.gradient),
      Master(args),
      Moment(args.moment1, MomentNumber::first),
      Moment(has_moment2(args.rule) ? args.moment2 : TensorView{}, MomentNumber::second),
      args.non_finite.empty() ? Global<double>() : Global<double>(args.non_finite),
      {}};
  for (std::int64_t begin = 0; begin < count; begin = pass.piece.end) {
    pass.piece = update_piece(args, begin);
    const std::int64_t groups = ceil_div(pass.piece.end - begin, group_elements);
    launcher.launch("update", update_kernel<G, Master, Moment>,
                    strided_shape(groups, launcher.limits()), pass);
  }
}

template <class G, class Master, class Launcher>
void launch_update_moments(Launcher& launcher, const UpdateArgs& args) {
  switch (args.moment1.dtype) {
    case DType::f32:
      return launch_update_pieces<G, Master, PlainMoment<float>>(launcher, args);
    case DType::bf16:
      return launch_update_pieces<G, Master, PlainMoment<bfloat16>>(launcher, args);
    default:
      return launch_update_pieces<G, Master, Q8Moment>(launcher, args);
  }
}

template <class Launcher>
void launch_update(Launcher& launcher, const UpdateArgs& args) {
  check_update(args);
  with_float_type(args.gradient.dtype, [&](auto element) {
    using G = decltype(element);
    if (is_split(args)) {
      launch_update_moments<G, SplitMaster>(launcher, args);
    } else if (args.weight.empty() || args.weight.dtype == DType::f32) {
      launch_update_moments<G, WholeMaster<float>>(launcher, args);
    } else {
      launch_update_moments<G, WholeMaster<bfloat16>>(launcher, args);
    }
  });
}

}  // namespace strata::cuda
