// The exact family of kernels/cuda has the bits of the reference, from any address, under any order
// of blocks and threads, and for large tensors those of the CPU's engine.

#include "contract/cuda/kernels_under_test.hpp"
#include "contract/kernels/exact_harness.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "strata/core/bytes.hpp"

namespace strata::testing {
namespace {

constexpr std::int64_t sizes[] = {1, 7, 8, 31, 64, 2047, 2049, 9001};

// Calls check with the kernels under several orders, and an offset that unaligns tensors.
template <typename F>
void on_every_order(F check) {
  for (std::uint64_t seed : {0u, 1u, 2u}) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    check(*make_kernels_under_test(seed), static_cast<std::int64_t>(seed * 3));
  }
}

class CudaExact : public ::testing::Test {
 protected:
  Stream& stream() { return host_stream(); }
  std::unique_ptr<Kernels> ref_ = make_ref_kernels();
  PhiloxStream random_{41, 0};
};

TEST_F(CudaExact, CastsBothWays) {
  for (DType from : storages) {
    for (DType to : storages) {
      for (std::int64_t n : sizes) {
        const Tensor source = mixed_values(random_, from, n), expected(to, {n});
        ref_->cast(source, expected, stream());
        on_every_order([&](Kernels& cuda, std::int64_t offset) {
          const Tensor actual(to, {n}, offset);
          cuda.cast(placed(source, offset), actual, stream());
          EXPECT_EQ(actual.bits(), expected.bits()) << n;
        });
      }
    }
  }
}

TEST_F(CudaExact, CastsWeights) {
  for (DType weight : storages) {
    for (std::int64_t n : sizes) {
      const Tensor master = mixed_values(random_, DType::f32, n), expected(weight, {n});
      ref_->cast_weight(master, expected, stream());
      on_every_order([&](Kernels& cuda, std::int64_t offset) {
        const Tensor actual(weight, {n}, offset);
        cuda.cast_weight(placed(master, offset), actual, stream());
        EXPECT_EQ(actual.bits(), expected.bits()) << n;
      });
    }
  }
}

// What a GPU's arithmetic gives, and no host's.
TEST_F(CudaExact, CastsANaNOfAllBitsToAWeightThatIsOne) {
  const Tensor master(DType::f32, {9});
  std::fill_n(master.view().as<std::uint32_t>(), 9, 0x7fffffffu);
  on_every_order([&](Kernels& cuda, std::int64_t offset) {
    const Tensor weight(DType::bf16, {9}, offset);
    cuda.cast_weight(master, weight, stream());
    for (std::int64_t i = 0; i < weight.count(); ++i) EXPECT_TRUE(std::isnan(weight.at(i))) << i;
  });
}

TEST_F(CudaExact, Accumulates) {
  for (DType dtype : storages) {
    for (Accumulate accumulate : {Accumulate::no, Accumulate::yes}) {
      for (std::int64_t n : sizes) {
        const Tensor source = mixed_values(random_, dtype, n),
                     start = mixed_values(random_, DType::f32, n), expected = copy_of(start);
        ref_->accumulate(source, expected, accumulate, stream());
        on_every_order([&](Kernels& cuda, std::int64_t offset) {
          const Tensor actual = placed(start, offset);
          cuda.accumulate(placed(source, offset), actual, accumulate, stream());
          EXPECT_EQ(actual.bits(), expected.bits()) << n;
        });
      }
    }
  }
}

// The reference adds in double and rounds twice: within a rounding.
TEST_F(CudaExact, AddsAlsoInPlace) {
  for (DType dtype : storages) {
    for (std::int64_t n : sizes) {
      const Tensor a = random_normal(random_, dtype, {n}), b = random_normal(random_, dtype, {n}),
                   expected(dtype, {n});
      ref_->add(a, b, expected, stream());
      on_every_order([&](Kernels& cuda, std::int64_t offset) {
        const Tensor out(dtype, {n}, offset), in_place = placed(a, offset);
        cuda.add(placed(a, offset), placed(b, offset), out, stream());
        cuda.add(in_place, placed(b, offset), in_place, stream());
        expect_close(out, expected, "sum");
        EXPECT_EQ(in_place.bits(), out.bits());
      });
    }
  }
}

TEST_F(CudaExact, SumsInOrder) {
  for (std::int64_t n : sizes) {
    const Tensor values = mixed_values(random_, DType::f32, n), expected(DType::f64, {1});
    ref_->sum(values, expected, stream());
    on_every_order([&](Kernels& cuda, std::int64_t offset) {
      const Tensor actual(DType::f64, {1});
      cuda.sum(placed(values, offset), actual, stream());
      EXPECT_EQ(actual.bits(), expected.bits()) << n;
    });
  }
}

TEST_F(CudaExact, SumsSquaresInSixtyFourLanes) {
  for (DType dtype : storages) {
    for (std::int64_t n : {1, 63, 64, 65, 4095, 4096, 4097, 140003}) {
      const Tensor values = mixed_values(random_, dtype, n),
                   expected(DType::f64, {ceil_div(n, 4096)});
      ref_->square_sums(values, expected, stream());
      on_every_order([&](Kernels& cuda, std::int64_t offset) {
        const Tensor actual(DType::f64, {ceil_div(n, 4096)});
        cuda.square_sums(placed(values, offset), actual, stream());
        EXPECT_EQ(actual.bits(), expected.bits()) << n;
      });
    }
  }
}

TEST_F(CudaExact, HasTheBitsOfTheCpuForLargeTensors) {
  const std::int64_t n = is_on_gpu() ? (1 << 23) + 5 : 70'001;
  const auto cpu = make_cpu_kernels({.num_threads = 2}), cuda = make_kernels_under_test(7);
  for (DType dtype : storages) {
    const Tensor source = mixed_values(random_, dtype, n);
    const auto bits = [&](Kernels& kernels) {
      const Tensor sums(DType::f64, {ceil_div(n, 4096)}), wide(DType::f32, {n}),
          narrow(DType::bf16, {n});
      kernels.square_sums(source, sums, stream());
      kernels.accumulate(source, wide, Accumulate::no, stream());
      kernels.accumulate(source, wide, Accumulate::yes, stream());
      kernels.cast_weight(wide, narrow, stream());
      return sums.bits() + wide.bits() + narrow.bits();
    };
    EXPECT_TRUE(bits(*cuda) == bits(*cpu));
  }
}

TEST_F(CudaExact, SquareSumsShowEveryValueThatIsNotFinite) {
  for (double bad :
       {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
        std::numeric_limits<double>::quiet_NaN()}) {
    for (std::int64_t at : {0, 4095, 4096, 8000}) {
      Tensor values = mixed_values(random_, DType::bf16, 8001);
      values.set(at, bad);
      const Tensor sums(DType::f64, {2});
      make_kernels_under_test(3)->square_sums(values, sums, stream());
      EXPECT_EQ(std::isfinite(sums.at(0)), at >= 4096);
      EXPECT_EQ(std::isfinite(sums.at(1)), at < 4096);
    }
  }
}

}  // namespace
}  // namespace strata::testing
