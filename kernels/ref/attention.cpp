#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/ref/doubles.hpp"
#include "kernels/ref/ref_ops.hpp"

namespace strata::ref {
namespace {

// One query head over the whole micro-batch: where its rows and those of its key/value head lie.
struct Heads {
  std::int64_t num_tokens, q, g, d;

  explicit Heads(const AttentionArgs& args)
      : num_tokens(args.q_tqd.dim(0)),
        q(args.q_tqd.dim(1)),
        g(args.k_tgd.dim(1)),
        d(args.q_tqd.dim(2)) {
    ensure(q % g == 0 && args.k_tgd.dim(0) == num_tokens && args.k_tgd.dim(2) == d);
    ensure(args.v_tgd.shape == args.k_tgd.shape && args.out_tqd.count() == args.q_tqd.count());
    ensure(args.document_start_t.count() == num_tokens && args.lse_qt.count() == q * num_tokens);
  }
  std::size_t query(std::int64_t t, std::int64_t head) const {
    return static_cast<std::size_t>((t * q + head) * d);
  }
  std::size_t key(std::int64_t t, std::int64_t head) const {
    return static_cast<std::size_t>((t * g + head / (q / g)) * d);
  }
  std::size_t size() const { return static_cast<std::size_t>(d); }
};

double dot(const double* a, const double* b, std::size_t size) {
  double total = 0;
  for (std::size_t i = 0; i < size; ++i) total += a[i] * b[i];
  return total;
}

void add_scaled(double* target, const double* source, double factor, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) target[i] += factor * source[i];
}

double log_sum_exp(const Doubles& scores) {
  const double largest = *std::max_element(scores.begin(), scores.end());
  double total = 0;
  for (double score : scores) total += std::exp(score - largest);
  return largest + std::log(total);
}

std::int64_t document_start(const AttentionArgs& args, std::int64_t t) {
  const std::int64_t start = args.document_start_t.as<const std::int32_t>()[t];
  ensure(start >= 0 && start <= t);
  return start;
}

// The scaled scores of row (t, head) against tokens document_start(t) .. t.
Doubles scores_of(const AttentionArgs& args, const Heads& at, const Doubles& q, const Doubles& k,
                  std::int64_t t, std::int64_t head) {
  Doubles scores;
  for (std::int64_t s = document_start(args, t); s <= t; ++s) {
    const double score = dot(&q[at.query(t, head)], &k[at.key(s, head)], at.size());
    scores.push_back(static_cast<double>(args.scale) * score);
  }
  return scores;
}

}  // namespace

void attention_forward(const AttentionArgs& args) {
  const Heads at(args);
  const Doubles q = read(args.q_tqd), k = read(args.k_tgd), v = read(args.v_tgd);
  Doubles out(q.size(), 0.0);
  for (std::int64_t head = 0; head < at.q; ++head) {
    for (std::int64_t t = 0; t < at.num_tokens; ++t) {
      const Doubles scores = scores_of(args, at, q, k, t, head);
      const double lse = log_sum_exp(scores);
      std::int64_t s = document_start(args, t);
      for (double score : scores) {
        add_scaled(&out[at.query(t, head)], &v[at.key(s++, head)], std::exp(score - lse),
                   at.size());
      }
      set_element(args.lse_qt, head * at.num_tokens + t, lse);
    }
  }
  write(out, args.out_tqd);
}

// With p = exp(score - lse): dv += p dout, dscore = p (dout . v - dout . out), dq += scale dscore
// k, dk += scale dscore q.
void attention_backward(const AttentionArgs& args) {
  const Heads at(args);
  const Doubles q = read(args.q_tqd), k = read(args.k_tgd), v = read(args.v_tgd);
  const Doubles out = read(args.out_tqd), dout = read(args.dout_tqd);
  Doubles dq(q.size(), 0.0), dk(k.size(), 0.0), dv(v.size(), 0.0);
  for (std::int64_t head = 0; head < at.q; ++head) {
    for (std::int64_t t = 0; t < at.num_tokens; ++t) {
      const std::size_t row = at.query(t, head);
      const double lse = element(args.lse_qt, head * at.num_tokens + t);
      const double mean = dot(&dout[row], &out[row], at.size());
      std::int64_t s = document_start(args, t);
      for (double score : scores_of(args, at, q, k, t, head)) {
        const std::size_t key = at.key(s++, head);
        const double p = std::exp(score - lse);
        const double dscore =
            static_cast<double>(args.scale) * p * (dot(&dout[row], &v[key], at.size()) - mean);
        add_scaled(&dv[key], &dout[row], p, at.size());
        add_scaled(&dq[row], &k[key], dscore, at.size());
        add_scaled(&dk[key], &q[row], dscore, at.size());
      }
    }
  }
  write(dq, args.dq_tqd);
  write(dk, args.dk_tgd);
  write(dv, args.dv_tgd);
}

}  // namespace strata::ref
