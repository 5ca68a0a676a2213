#pragma once
// What the tests of the exact family share: every SIMD target, and values that find rounding.

#include <cstdint>
#include <string>
#include <vector>

#include "contract/kernels/kernels_harness.hpp"
#include "support/simd_targets.hpp"

namespace strata::testing {

// Ordinary values among zeros, denormals, huge and tiny ones. Signs at random.
inline double mixed_value(PhiloxStream& random) {
  static const std::vector<double> special = {0.0,  1e-45, 1e-40, 1.1754944e-38, 1e-20,
                                              1e-7, 1.0,   6e4,   1e18,          3e38};
  const double sign = random.next_below(2) == 0 ? -1 : 1;
  const bool ordinary = random.next_below(4) != 0;
  return sign * (ordinary ? random.next_normal() : special[random.next_below(special.size())]);
}

inline Tensor mixed_values(PhiloxStream& random, DType dtype, std::int64_t n,
                           std::int64_t offset = 0) {
  Tensor result(dtype, {n}, offset);
  for (std::int64_t i = 0; i < n; ++i) result.set(i, mixed_value(random));
  return result;
}

class ExactFamily : public ::testing::Test {
 protected:
  // Calls check with `cpu` under every SIMD target and thread count.
  template <typename F>
  void on_every_cpu(F check) {
    on_every_target([&] {
      for (int num_threads : {1, 2, 5}) {
        SCOPED_TRACE("threads " + std::to_string(num_threads));
        check(*make_cpu_kernels({.num_threads = num_threads}));
      }
    });
  }
  template <typename F>
  void on_every_target(F check) {
    for (std::int64_t target : targets()) {
      const ScopedTarget pinned(target);
      SCOPED_TRACE(hwy::TargetName(target));
      check();
    }
  }
  Stream& stream() { return host_stream(); }
  std::unique_ptr<Kernels> ref_ = make_ref_kernels();
};

}  // namespace strata::testing
