// The exact family gives the same bits in `ref` and in `cpu`: on every SIMD target that this
// machine runs, with any number of threads, from any address, and however a tensor is cut into
// tiles.

#include <cmath>
#include <limits>

#include "hwy/highway.h"

#include "contract/kernels/kernels_harness.hpp"
#include "strata/core/bytes.hpp"

namespace strata::testing {
namespace {

// Pins Highway's choice while alive.
class ScopedTarget {
 public:
  explicit ScopedTarget(std::int64_t target) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
  ~ScopedTarget() {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().DeInit();
  }
};

std::vector<std::int64_t> targets() {
  std::vector<std::int64_t> result;
  for (std::int64_t left = hwy::SupportedTargets() & HWY_TARGETS; left != 0; left &= left - 1) {
    result.push_back(left & -left);
  }
  return result;
}

// Ordinary values among zeros, denormals, huge and tiny ones. Signs at random.
Tensor mixed_values(PhiloxStream& random, DType dtype, std::int64_t n, std::int64_t offset = 0) {
  const std::vector<double> special = {0.0,  1e-45, 1e-40, 1.1754944e-38, 1e-20,
                                       1e-7, 1.0,   6e4,   1e18,          3e38};
  Tensor result(dtype, {n}, offset);
  for (std::int64_t i = 0; i < n; ++i) {
    const double sign = random.next_below(2) == 0 ? -1 : 1;
    const bool ordinary = random.next_below(4) != 0;
    const double value =
        ordinary ? random.next_normal() : special[random.next_below(special.size())];
    result.set(i, sign * value);
  }
  return result;
}

Tensor moved(const Tensor& source, std::int64_t offset) {
  Tensor result(source.view().dtype, source.view().shape, offset);
  for (std::int64_t i = 0; i < source.count(); ++i) result.set(i, source.at(i));
  return result;
}

struct AdamWState {
  Tensor gradient, master, moment1, moment2, weight;

  static AdamWState random(DType gradient_dtype, DType weight_dtype, std::int64_t n) {
    PhiloxStream random(21, 0);
    AdamWState state{mixed_values(random, gradient_dtype, n), mixed_values(random, DType::f32, n),
                     mixed_values(random, DType::f32, n), mixed_values(random, DType::f32, n),
                     Tensor(weight_dtype, {n})};
    for (std::int64_t i = 0; i < n; ++i) state.moment2.set(i, std::abs(state.moment2.at(i)));
    return state;
  }
  AdamWState at(std::int64_t offset) const {
    return {moved(gradient, offset), moved(master, offset), moved(moment1, offset),
            moved(moment2, offset), Tensor(weight.view().dtype, weight.view().shape, offset)};
  }
  AdamWArgs args(std::int64_t begin, std::int64_t end) const {
    const auto part = [&](const Tensor& tensor) {
      return tensor.view().slice(begin, {end - begin});
    };
    AdamWArgs result{part(gradient), part(master), part(moment1), part(moment2), part(weight)};
    result.learning_rate = 3e-4f;
    result.weight_decay = 0.1f;
    result.gradient_scale = 0.37f;
    result.bias_correction1 = 0.271f;
    result.bias_correction2_sqrt = 0.05472f;
    return result;
  }
  std::string bits() const {
    return master.bits() + moment1.bits() + moment2.bits() + weight.bits();
  }
};

class ExactFamily : public ::testing::Test {
 protected:
  // Calls check with `cpu` under every SIMD target and thread count.
  template <typename F>
  void on_every_cpu(F check) {
    for (std::int64_t target : targets()) {
      const ScopedTarget pinned(target);
      for (int num_threads : {1, 2, 5}) {
        SCOPED_TRACE(std::string(hwy::TargetName(target)) + ", threads " +
                     std::to_string(num_threads));
        check(*make_cpu_kernels({.num_threads = num_threads}));
      }
    }
  }
  Stream& stream() { return host_stream(); }
  std::unique_ptr<Kernels> ref_ = make_ref_kernels();
};

constexpr DType storages[] = {DType::f32, DType::bf16};

TEST_F(ExactFamily, RunsOnMoreThanOneTarget) {
  // Were dispatch off, the other tests here would compare a target with itself.
  EXPECT_GE(targets().size(), 2u);
}

TEST_F(ExactFamily, AdamWHasTheBitsOfTheReference) {
  for (DType gradient : storages) {
    for (DType weight : storages) {
      for (std::int64_t n : {1, 15, 257, 140003}) {
        const AdamWState start = AdamWState::random(gradient, weight, n);
        const AdamWState expected = start.at(0);
        ref_->adamw(expected.args(0, n), stream());
        on_every_cpu([&](Kernels& cpu) {
          const AdamWState actual = start.at(0);
          cpu.adamw(actual.args(0, n), stream());
          EXPECT_TRUE(actual.bits() == expected.bits()) << n;
        });
      }
    }
  }
}

TEST_F(ExactFamily, AdamWDoesNotFeelAddressesNorTiles) {
  const std::int64_t n = 1003;
  const AdamWState start = AdamWState::random(DType::bf16, DType::bf16, n);
  const AdamWState expected = start.at(0);
  ref_->adamw(expected.args(0, n), stream());
  on_every_cpu([&](Kernels& cpu) {
    for (std::int64_t offset : {1, 3, 7}) {
      const AdamWState actual = start.at(offset);
      std::int64_t begin = 0;
      for (std::int64_t end : {std::int64_t{1}, std::int64_t{64}, std::int64_t{501}, n}) {
        cpu.adamw(actual.args(begin, end), stream());
        begin = end;
      }
      EXPECT_TRUE(actual.bits() == expected.bits()) << "offset " << offset;
    }
  });
}

TEST_F(ExactFamily, AdamWLeavesOutAWeightNobodyWants) {
  const AdamWState with = AdamWState::random(DType::f32, DType::f32, 257), without = with.at(0);
  ref_->adamw(with.args(0, 257), stream());
  AdamWArgs args = without.args(0, 257);
  args.weight = {};
  make_cpu_kernels({})->adamw(args, stream());
  EXPECT_EQ(without.master.bits(), with.master.bits());
}

TEST_F(ExactFamily, CastWeightHasTheBitsOfTheReference) {
  PhiloxStream random(22, 0);
  for (DType weight : storages) {
    for (std::int64_t n : {1, 31, 140003}) {
      const Tensor master = mixed_values(random, DType::f32, n, 1);
      const Tensor expected(weight, {n});
      ref_->cast_weight(master, expected, stream());
      on_every_cpu([&](Kernels& cpu) {
        const Tensor actual(weight, {n}, 3);
        cpu.cast_weight(master, actual, stream());
        EXPECT_TRUE(actual.bits() == expected.bits()) << n;
      });
    }
  }
}

TEST_F(ExactFamily, AccumulateHasTheBitsOfTheReference) {
  PhiloxStream random(23, 0);
  for (DType source_dtype : storages) {
    for (Accumulate accumulate : {Accumulate::no, Accumulate::yes}) {
      for (std::int64_t n : {1, 31, 140003}) {
        const Tensor source = mixed_values(random, source_dtype, n, 1),
                     start = mixed_values(random, DType::f32, n);
        const Tensor expected = copy_of(start);
        ref_->accumulate(source, expected, accumulate, stream());
        on_every_cpu([&](Kernels& cpu) {
          const Tensor actual = moved(start, 3);
          cpu.accumulate(source, actual, accumulate, stream());
          EXPECT_TRUE(actual.bits() == expected.bits()) << n;
        });
      }
    }
  }
}

TEST_F(ExactFamily, SquareSumsHaveTheBitsOfTheReference) {
  PhiloxStream random(24, 0);
  for (DType dtype : storages) {
    for (std::int64_t n : {1, 63, 64, 65, 4095, 4096, 4097, 140003}) {
      const Tensor values = mixed_values(random, dtype, n, 1);
      const Tensor expected(DType::f64, {ceil_div(n, 4096)});
      ref_->square_sums(values, expected, stream());
      EXPECT_TRUE(std::isfinite(expected.at(0))) << "fp32's largest squares fit in double";
      on_every_cpu([&](Kernels& cpu) {
        const Tensor actual(DType::f64, {ceil_div(n, 4096)});
        cpu.square_sums(values, actual, stream());
        EXPECT_TRUE(actual.bits() == expected.bits()) << n;
      });
    }
  }
}

TEST_F(ExactFamily, SquareSumsOfABlockDoNotDependOnItsNeighbours) {
  PhiloxStream random(25, 0);
  const Tensor values = mixed_values(random, DType::f32, 4 * 4096), whole(DType::f64, {4});
  const auto cpu = make_cpu_kernels({.num_threads = 2});
  cpu->square_sums(values, whole, stream());
  for (std::int64_t i = 0; i < 4; ++i) {
    const Tensor part(DType::f64, {1});
    cpu->square_sums(values.view().slice(i * 4096, {4096}), part, stream());
    EXPECT_EQ(part.at(0), whole.at(i));
  }
}

TEST_F(ExactFamily, SquareSumsShowEveryValueThatIsNotFinite) {
  PhiloxStream random(26, 0);
  const double inf = std::numeric_limits<double>::infinity(),
               nan = std::numeric_limits<double>::quiet_NaN();
  for (DType dtype : storages) {
    for (double bad : {inf, -inf, nan}) {
      for (std::int64_t at : {0, 4095, 4096, 8000}) {
        Tensor values = mixed_values(random, dtype, 8001);
        values.set(at, bad);
        on_every_cpu([&](Kernels& cpu) {
          const Tensor sums(DType::f64, {2});
          cpu.square_sums(values, sums, stream());
          EXPECT_EQ(std::isfinite(sums.at(0)), at >= 4096);
          EXPECT_EQ(std::isfinite(sums.at(1)), at < 4096);
        });
      }
    }
  }
}

}  // namespace
}  // namespace strata::testing
