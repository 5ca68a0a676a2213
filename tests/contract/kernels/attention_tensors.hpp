#pragma once
// The operands of attention, for a case with documents: drawn once for tests of every kernel.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "contract/kernels/kernels_harness.hpp"

namespace strata::testing {

struct AttentionCase {
  std::string name;
  std::int64_t t, q, g, d;
  std::vector<std::int32_t> document_starts;  // of the documents, not of the tokens
};

inline std::vector<std::int32_t> starts_of_tokens(const AttentionCase& c) {
  std::vector<std::int32_t> starts;
  for (std::int64_t token = 0; token < c.t; ++token) {
    const auto after =
        std::ranges::upper_bound(c.document_starts, static_cast<std::int32_t>(token));
    starts.push_back(*std::prev(after));
  }
  return starts;
}

struct AttentionTensors {
  Tensor q, k, v, dout, starts, out, lse, dq, dk, dv;
  float scale;

  AttentionTensors(const AttentionCase& c, DType dtype, std::uint64_t seed)
      : q(dtype, {c.t, c.q, c.d}),
        k(dtype, {c.t, c.g, c.d}),
        v(k),
        dout(q),
        starts(integers(starts_of_tokens(c))),
        out(dtype, {c.t, c.q, c.d}),
        lse(DType::f32, {c.q, c.t}),
        dq(dtype, {c.t, c.q, c.d}),
        dk(dtype, {c.t, c.g, c.d}),
        dv(dtype, {c.t, c.g, c.d}),
        scale(1 / std::sqrt(static_cast<float>(c.d))) {
    PhiloxStream random(seed, 0);
    for (Tensor* like_q : {&q, &dout}) *like_q = random_normal(random, dtype, {c.t, c.q, c.d});
    for (Tensor* like_k : {&k, &v}) *like_k = random_normal(random, dtype, {c.t, c.g, c.d});
  }

  AttentionArgs args(std::span<std::byte> scratch) const {
    return {.q_tqd = q,
            .k_tgd = k,
            .v_tgd = v,
            .document_start_t = starts,
            .scale = scale,
            .out_tqd = out,
            .lse_qt = lse,
            .dout_tqd = dout,
            .dq_tqd = dq,
            .dk_tgd = dk,
            .dv_tgd = dv,
            .scratch = scratch};
  }
};

// A score gradient is a difference of numbers near 1, so its error does not shrink with it.
inline void expect_near(const Tensor& actual, const Tensor& expected, const std::string& what,
                        double tolerance, double least = 0.1) {
  double squares = 0;
  for (std::int64_t i = 0; i < expected.count(); ++i) squares += expected.at(i) * expected.at(i);
  const double typical = std::sqrt(squares / static_cast<double>(expected.count()));
  for (std::int64_t i = 0; i < actual.count(); ++i) {
    const double size = std::max({std::abs(expected.at(i)), typical, least});
    ASSERT_NEAR(actual.at(i), expected.at(i), tolerance * size) << what << ", element " << i;
  }
}

}  // namespace strata::testing
