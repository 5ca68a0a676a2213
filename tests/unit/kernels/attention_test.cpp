#include "kernels/cpu/attention.hpp"

#include <gtest/gtest.h>

#include "contract/kernels/attention_tensors.hpp"
#include "kernels/cpu/parallel.hpp"

namespace strata::testing {
namespace {

// Within one tile and across tiles of queries and keys; documents that begin within, at and after a
// block.
std::vector<AttentionCase> attention_cases() {
  return {{"one token", 1, 1, 1, 8, {0}},
          {"odd sizes", 37, 6, 2, 6, {0}},
          {"documents", 150, 4, 2, 8, {0, 1, 70, 128}},
          {"each token alone", 70, 2, 1, 8,
           [] {
             std::vector<std::int32_t> starts(70);
             for (std::size_t i = 0; i < 70; ++i) starts[i] = static_cast<std::int32_t>(i);
             return starts;
           }()},
          {"several tiles of keys", 700, 2, 1, 16, {0}},
          {"a document that begins in a later tile", 640, 1, 1, 8, {0, 600}},
          {"usual head", 130, 3, 1, 64, {0, 100}},
          {"wide head", 65, 2, 2, 128, {0}}};
}

// The textbook, in double, one head and one query at a time.
struct Oracle {
  Oracle(const AttentionCase& c, const AttentionTensors& in)
      : out(zeros(DType::f64, {c.t, c.q, c.d})),
        lse(zeros(DType::f64, {c.q, c.t})),
        dq(zeros(DType::f64, {c.t, c.q, c.d})),
        dk(zeros(DType::f64, {c.t, c.g, c.d})),
        dv(zeros(DType::f64, {c.t, c.g, c.d})) {
    for (std::int64_t head = 0; head < c.q; ++head) {
      for (std::int64_t token = 0; token < c.t; ++token) visit(c, in, head, token);
    }
  }

  void visit(const AttentionCase& c, const AttentionTensors& in, std::int64_t head,
             std::int64_t token) {
    const auto first = static_cast<std::int64_t>(in.starts.at(token));
    const std::int64_t row = (token * c.q + head) * c.d;
    const auto key_row = [&](std::int64_t key) { return (key * c.g + head / (c.q / c.g)) * c.d; };
    std::vector<double> p, dp;
    double sum = 0, delta = 0;
    for (std::int64_t key = first; key <= token; ++key) {
      p.push_back(std::exp(in.scale * dot(in.q, row, in.k, key_row(key), c.d)));
      dp.push_back(dot(in.dout, row, in.v, key_row(key), c.d));
      sum += p.back();
    }
    lse.set(head * c.t + token, std::log(sum));
    for (std::size_t i = 0; i < p.size(); ++i) delta += (p[i] /= sum) * dp[i];
    for (std::size_t i = 0; i < p.size(); ++i) {
      const std::int64_t key = key_row(first + static_cast<std::int64_t>(i));
      const double ds = p[i] * (dp[i] - delta) * in.scale, part = p[i] * dp[i] * in.scale;
      for (std::int64_t j = 0; j < c.d; ++j) {
        squares += part * in.k.at(key + j) * part * in.k.at(key + j);
        add(out, row + j, p[i] * in.v.at(key + j));
        add(dv, key + j, p[i] * in.dout.at(row + j));
        add(dq, row + j, ds * in.k.at(key + j));
        add(dk, key + j, ds * in.q.at(row + j));
      }
    }
  }

  static void add(Tensor& tensor, std::int64_t i, double value) {
    tensor.set(i, tensor.at(i) + value);
  }
  static double dot(const Tensor& a, std::int64_t a_at, const Tensor& b, std::int64_t b_at,
                    std::int64_t count) {
    double sum = 0;
    for (std::int64_t j = 0; j < count; ++j) sum += a.at(a_at + j) * b.at(b_at + j);
    return sum;
  }

  // How large what cancels in dq and dk is: a token alone has none of them, and their roundings.
  double cancelled() const { return std::sqrt(squares / static_cast<double>(dq.count())); }

  Tensor out, lse, dq, dk, dv;
  double squares = 0;
};

Scratch scratch_for(const AttentionCase& c) {
  return Scratch(cpu::attention_scratch_bytes(c.t, c.q, c.g, c.d));
}

TEST(Attention, AgreesWithTheTextbook) {
  cpu::Parallel parallel(2);
  for (DType dtype : {DType::f32, DType::bf16}) {
    for (const AttentionCase& c : attention_cases()) {
      const AttentionTensors tensors(c, dtype, 11);
      const Oracle oracle(c, tensors);
      Scratch scratch = scratch_for(c);
      cpu::attention_forward(parallel, tensors.args({}));
      cpu::attention_backward(parallel, tensors.args(scratch.span()));
      // In bf16, probabilities, score gradients and the out that backward reads are rounded too.
      const double tolerance = dtype == DType::f32 ? 1e-5 : 0x1p-5;
      const std::string what = c.name + " " + std::string(dtype_name(dtype)) + " ";
      expect_near(tensors.out, oracle.out, what + "out", tolerance);
      expect_close(tensors.lse, oracle.lse, what + "lse");
      const double least = std::max(0.1, oracle.cancelled());
      expect_near(tensors.dq, oracle.dq, what + "dq", tolerance, least);
      expect_near(tensors.dk, oracle.dk, what + "dk", tolerance, least);
      expect_near(tensors.dv, oracle.dv, what + "dv", tolerance);
    }
  }
}

TEST(Attention, IsStableForLargeScores) {
  const AttentionCase c{"large", 600, 1, 1, 8, {0}};
  AttentionTensors tensors(c, DType::f32, 5);
  for (std::int64_t i = 0; i < tensors.q.count(); ++i) tensors.q.set(i, tensors.q.at(i) * 30);
  const Oracle oracle(c, tensors);
  cpu::Parallel parallel(2);
  cpu::attention_forward(parallel, tensors.args({}));
  expect_close(tensors.out, oracle.out, 1e-4, "out");
  expect_close(tensors.lse, oracle.lse, 1e-4, "lse");
}

TEST(Attention, GivesTheSameBitsForAnyNumberOfThreads) {
  for (DType dtype : {DType::f32, DType::bf16}) {
    const AttentionCase c{"threads", 300, 6, 2, 16, {0, 90}};
    std::vector<std::string> bits;
    for (int threads : {1, 2, 5}) {
      const AttentionTensors tensors(c, dtype, 23);
      cpu::Parallel parallel(threads);
      Scratch scratch = scratch_for(c);
      cpu::attention_forward(parallel, tensors.args({}));
      cpu::attention_backward(parallel, tensors.args(scratch.span()));
      bits.push_back(tensors.out.bits() + tensors.lse.bits() + tensors.dq.bits() +
                     tensors.dk.bits() + tensors.dv.bits());
    }
    EXPECT_EQ(bits[0], bits[1]);
    EXPECT_EQ(bits[0], bits[2]);
  }
}

TEST(Attention, NeedsScratchThatGrowsWithTokensAlone) {
  const std::uint64_t one = cpu::attention_scratch_bytes(1 << 10, 8, 2, 64);
  const std::uint64_t twice = cpu::attention_scratch_bytes(1 << 11, 8, 2, 64);
  EXPECT_LE(twice, 2 * one);
}

}  // namespace
}  // namespace strata::testing
