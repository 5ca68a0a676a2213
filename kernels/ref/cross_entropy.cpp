#include <cmath>

#include "kernels/ref/doubles.hpp"
#include "kernels/ref/ref_ops.hpp"

namespace strata::ref {
namespace {

// softmax(x) = exp(x - largest) / total: nothing overflows, and no digit is lost where the logits
// are large.
struct Softmax {
  double largest;
  double total = 0;

  Softmax(const double* logits, std::int64_t count) : largest(logits[0]) {
    for (std::int64_t i = 1; i < count; ++i) largest = std::fmax(largest, logits[i]);
    for (std::int64_t i = 0; i < count; ++i) total += std::exp(logits[i] - largest);
  }
  double probability(double logit) const { return std::exp(logit - largest) / total; }
  double loss(double logit) const { return std::log(total) + (largest - logit); }
};

}  // namespace

void cross_entropy(const CrossEntropyArgs& args) {
  const std::int64_t c = args.logits_cv.dim(0), v = args.logits_cv.dim(1);
  ensure(args.labels_c.count() == c && args.losses_c.count() == c);
  ensure(args.dlogits_cv.empty() || args.dlogits_cv.count() == c * v);
  const Doubles logits = read(args.logits_cv);
  Doubles losses(static_cast<std::size_t>(c), 0.0), dlogits(logits.size(), 0.0);
  for (std::int64_t row = 0; row < c; ++row) {
    const std::int64_t label = args.labels_c.as<const std::int32_t>()[row];
    ensure(label < v);
    if (label < 0) continue;
    const auto first = static_cast<std::size_t>(row * v),
               at_label = first + static_cast<std::size_t>(label);
    const Softmax softmax(&logits[first], v);
    losses[static_cast<std::size_t>(row)] = args.scale * softmax.loss(logits[at_label]);
    for (std::size_t i = first; i < first + static_cast<std::size_t>(v); ++i) {
      dlogits[i] = args.scale * (softmax.probability(logits[i]) - (i == at_label ? 1.0 : 0.0));
    }
  }
  write(losses, args.losses_c);
  if (!args.dlogits_cv.empty()) write(dlogits, args.dlogits_cv);
}

}  // namespace strata::ref
