// The exact family gives the same bits in `ref` and in `cpu`: on every SIMD target that this
// machine runs, with any number of threads, from any address, and however a tensor is cut into
// tiles. The optimizer pass: update_exact_test.cpp.

#include <cmath>
#include <limits>

#include "contract/kernels/exact_harness.hpp"
#include "strata/core/bytes.hpp"

namespace strata::testing {
namespace {

Tensor moved(const Tensor& source, std::int64_t offset) {
  Tensor result(source.view().dtype, source.view().shape, offset);
  for (std::int64_t i = 0; i < source.count(); ++i) result.set(i, source.at(i));
  return result;
}

constexpr DType storages[] = {DType::f32, DType::bf16};

TEST_F(ExactFamily, RunsOnMoreThanOneTarget) {
  // Were dispatch off, the other tests here would compare a target with itself.
  EXPECT_GE(targets().size(), 2u);
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
