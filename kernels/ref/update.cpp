// The optimizer pass, element by element: the oracle of every other engine. Moments are read whole
// into fp32, updated, and written whole.

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/common/decay_runs.hpp"
#include "kernels/common/update_checks.hpp"
#include "kernels/common/update_formulas.hpp"
#include "kernels/common/update_random.hpp"
#include "kernels/ref/ref_elements.hpp"
#include "kernels/ref/ref_ops.hpp"
#include "strata/core/block_q8.hpp"

namespace strata::ref {
namespace {

enum class MomentRole : std::uint8_t { moment1, moment2 };

// --- Masters

float read_master(const UpdateArgs& args, std::int64_t i) {
  if (!is_split(args)) return args.master.as<const float>()[i];
  return join_master(args.weight.as<const bfloat16>()[i], args.master.as<const std::uint16_t>()[i]);
}

void write_master(const UpdateArgs& args, std::int64_t i, float p) {
  if (is_split(args)) {
    args.master.as<std::uint16_t>()[i] = master_low_bits(p);
  } else {
    args.master.as<float>()[i] = p;
  }
  if (args.weight.empty()) return;
  if (args.weight.dtype == DType::f32) {
    args.weight.as<float>()[i] = p;
  } else {
    args.weight.as<bfloat16>()[i] = weight_to_bfloat16(p);
  }
}

// --- Moments

float* q8_scales(const TensorView& moment) {
  return reinterpret_cast<float*>(moment.as<std::byte>() + q8_scales_begin(moment.count()));
}

float read_q8(const TensorView& moment, MomentRole role, std::int64_t i) {
  const std::uint8_t code = moment.as<const std::uint8_t>()[i];
  const float scale = q8_scales(moment)[i / q8_block_elements];
  return role == MomentRole::moment1 ? q8_decode_signed(code, scale)
                                     : q8_decode_unsigned(code, scale);
}

std::vector<float> read_moment(const TensorView& moment, MomentRole role) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < moment.count(); ++i)
    values.push_back(moment.dtype == DType::q8 ? read_q8(moment, role, i) : read_float(moment, i));
  return values;
}

class MomentWriter {
 public:
  MomentWriter(const UpdateArgs& args, const TensorView& moment, MomentRole role)
      : first_(args.first), moment_(moment), role_(role), random_(args) {}

  void write(std::span<const float> values) const {
    if (moment_.dtype == DType::f32) {
      std::ranges::copy(values, moment_.as<float>());
    } else if (moment_.dtype == DType::bf16) {
      write_bfloat16(values);
    } else {
      for (std::int64_t block = 0; block < q8_num_blocks(moment_.count()); ++block)
        write_block(values, block);
    }
  }

 private:
  std::uint32_t random(std::size_t i) const {
    const std::int64_t at = first_ + static_cast<std::int64_t>(i);
    return random_bits(random_.chunk_key(at / random_chunk_elements),
                       static_cast<std::uint32_t>(at % random_chunk_elements));
  }
  void write_bfloat16(std::span<const float> values) const {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::uint32_t bits =
          role_ == MomentRole::moment1 ? random16_moment1(random(i)) : random16_moment2(random(i));
      moment_.as<bfloat16>()[i] = to_bfloat16_stochastic(values[i], bits);
    }
  }
  void write_block(std::span<const float> values, std::int64_t block) const {
    const auto begin = static_cast<std::size_t>(block * q8_block_elements);
    const std::size_t end = std::min(values.size(), begin + q8_block_elements);
    std::uint32_t largest = 0;
    for (std::size_t i = begin; i < end; ++i)
      largest = std::max(largest, std::bit_cast<std::uint32_t>(values[i]) & 0x7fffffffu);
    const bool has_sign = role_ == MomentRole::moment1;
    const float scale = q8_scale(largest, has_sign ? q8_signed_octaves : q8_unsigned_octaves);
    q8_scales(moment_)[block] = scale;
    const float inverse = q8_inverse_scale(scale);
    for (std::size_t i = begin; i < end; ++i)
      moment_.as<std::uint8_t>()[i] =
          has_sign ? q8_encode_signed(values[i], inverse, random20_moment1(random(i)))
                   : q8_encode_unsigned(values[i], inverse, random20_moment2(random(i)));
  }

  std::int64_t first_;
  TensorView moment_;
  MomentRole role_;
  UpdateRandom random_;
};

void write_moment(const UpdateArgs& args, const TensorView& moment, MomentRole role,
                  std::span<const float> values) {
  MomentWriter(args, moment, role).write(values);
}

void count_non_finite(const UpdateArgs& args) {
  if (args.non_finite.empty()) return;
  for (std::int64_t i = 0; i < args.gradient.count(); ++i)
    if (!std::isfinite(read_float(args.gradient, i))) *args.non_finite.as<double>() += 1;
}

}  // namespace

void update(const UpdateArgs& args) {
  check_update(args);
  const bool two = has_moment2(args.rule);
  std::vector<float> m = read_moment(args.moment1, MomentRole::moment1);
  std::vector<float> v(m.size());
  if (two) v = read_moment(args.moment2, MomentRole::moment2);
  const UpdateFactors decayed = update_factors(args), plain = without_decay(decayed);
  DecayRuns runs(args.decays, args.first);
  runs.for_each(args.first, args.first + args.master.count(),
                [&](std::int64_t begin, std::int64_t end, Decay decay) {
                  for (std::int64_t i = begin - args.first; i < end - args.first; ++i) {
                    const auto at = static_cast<std::size_t>(i);
                    UpdateElement<float> e{read_master(args, i), m[at], v[at]};
                    update_element(args.rule, decay == Decay::yes ? decayed : plain,
                                   read_float(args.gradient, i), e);
                    write_master(args, i, e.p);
                    m[at] = e.m;
                    v[at] = e.v;
                  }
                });
  write_moment(args, args.moment1, MomentRole::moment1, m);
  if (two) write_moment(args, args.moment2, MomentRole::moment2, v);
  count_non_finite(args);
}

}  // namespace strata::ref
