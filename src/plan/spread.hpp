#pragma once
// Deals bytes out to parts in given proportions, each prefix as near to them as whole pieces allow.

#include <array>
#include <cstdint>

namespace strata {

class Spread {
 public:
  explicit Spread(std::array<double, 3> fractions) : fractions_(fractions) {}

  // The part that the next piece of `bytes` goes to: the one furthest below its share.
  std::size_t next(std::uint64_t bytes) {
    total_ += static_cast<double>(bytes);
    std::size_t best = 0;
    double best_deficit = -1e300;
    for (std::size_t part = 0; part < fractions_.size(); ++part) {
      if (fractions_[part] <= 0) continue;
      const double deficit = fractions_[part] * total_ - given_[part];
      if (deficit > best_deficit) best = part, best_deficit = deficit;
    }
    given_[best] += static_cast<double>(bytes);
    return best;
  }

 private:
  std::array<double, 3> fractions_;
  std::array<double, 3> given_{};
  double total_ = 0;
};

}  // namespace strata
