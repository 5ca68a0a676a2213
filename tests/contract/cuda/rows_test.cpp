// Norms, RoPE and column sums of kernels/cuda beyond the contract suites: rows that a whole block
// takes, heads of odd sizes, addresses of no alignment, the same bits under every order. Bounds are
// those of the contract suites: fp32 4e-6, bf16 2^-8.

#include <cmath>

#include "contract/cuda/kernels_under_test.hpp"
#include "contract/kernels/kernels_harness.hpp"

namespace strata::testing {
namespace {

class CudaRows : public ::testing::Test {
 protected:
  Stream& stream() { return host_stream(); }
  std::unique_ptr<Kernels> ref_ = make_ref_kernels();
  PhiloxStream random_{51, 0};
};

// --- RMSNorm

struct Norm {
  Tensor x_th, w_h, dy_th, y_th, rstd_t, dx_th, dw_h;

  std::string bits() const { return y_th.bits() + rstd_t.bits() + dx_th.bits() + dw_h.bits(); }
};

Norm norm_case(PhiloxStream& random, DType dtype, std::int64_t t, std::int64_t h) {
  return {random_normal(random, dtype, {t, h}),
          random_normal(random, dtype, {h}),
          random_normal(random, dtype, {t, h}),
          Tensor(dtype, {t, h}),
          Tensor(DType::f32, {t}),
          zeros(dtype, {t, h}),
          Tensor(dtype, {h})};
}

Norm norm_case_like(const Norm& norm, DType dtype, std::int64_t offset) {
  const Shape rows = norm.x_th.view().shape, columns = norm.w_h.view().shape;
  const auto moved = [&](const Tensor& x) { return placed(converted(x, dtype), offset); };
  return {moved(norm.x_th),
          moved(norm.w_h),
          moved(norm.dy_th),
          Tensor(dtype, rows, offset),
          Tensor(dtype == DType::f64 ? DType::f64 : DType::f32, {rows[0]}),
          zeros(dtype, rows),
          Tensor(dtype, columns, offset)};
}

void run(Kernels& kernels, const Norm& norm, Accumulate accumulate) {
  kernels.rmsnorm_forward(norm.x_th, norm.w_h, 1e-5f, norm.y_th, norm.rstd_t, host_stream());
  Scratch scratch(kernels.rmsnorm_scratch_bytes(norm.x_th.view().dim(0), norm.w_h.count()));
  kernels.rmsnorm_backward(norm.dy_th, norm.x_th, norm.w_h, norm.rstd_t, norm.dx_th, accumulate,
                           norm.dw_h, scratch.span(), host_stream());
}

TEST_F(CudaRows, NormalisesShortAndLongRowsForwardAndBack) {
  for (DType dtype : storages) {
    for (std::int64_t t : {1, 19, 67}) {
      for (std::int64_t h : {64, 128, 1024, 1032, 2050}) {
        SCOPED_TRACE(std::to_string(t) + " rows of " + std::to_string(h));
        const Norm actual = norm_case(random_, dtype, t, h);
        const Norm expected = norm_case_like(actual, DType::f64, 0);
        run(*make_kernels_under_test(2), actual, Accumulate::no);
        run(*ref_, expected, Accumulate::no);
        expect_close(actual.y_th, expected.y_th, "y");
        expect_close(actual.rstd_t, expected.rstd_t, "rstd");
        expect_close(actual.dx_th, expected.dx_th, "dx");
        expect_close(actual.dw_h, expected.dw_h, "dw");
      }
    }
  }
}

TEST_F(CudaRows, NormsHaveTheSameBitsFromEveryAddressUnderEveryOrder) {
  for (std::int64_t h : {72, 1096}) {
    const Norm start = norm_case(random_, DType::bf16, 37, h);
    std::string first;
    for (std::uint64_t seed : {0u, 1u, 2u}) {
      const Norm norm = norm_case_like(start, DType::bf16, static_cast<std::int64_t>(seed));
      run(*make_kernels_under_test(seed), norm, Accumulate::yes);
      if (seed == 0) first = norm.bits();
      EXPECT_TRUE(norm.bits() == first) << "seed " << seed;
    }
  }
}

// --- RoPE

std::vector<float> frequencies(std::int64_t head_dim) {
  std::vector<float> result;
  for (std::int64_t j = 0; j < head_dim / 2; ++j) {
    const double exponent = -2.0 * static_cast<double>(j) / static_cast<double>(head_dim);
    result.push_back(static_cast<float>(std::pow(10000.0, exponent)));
  }
  return result;
}

TEST_F(CudaRows, TurnPairsByThePositionInTheDocument) {
  const Tensor starts = integers({0, 0, 0, 3, 3, 5, 5, 5, 5, 5, 5});
  for (DType dtype : storages) {
    for (std::int64_t d : {2, 6, 16, 64, 128, 160}) {
      for (Rotation rotation : {Rotation::forward, Rotation::inverse}) {
        const Tensor x = random_normal(random_, dtype, {11, 3, d});
        const Tensor expected = converted(x, DType::f64), moved = placed(x, 3);
        ref_->rope(expected, starts, frequencies(d), rotation, stream());
        make_kernels_under_test(1)->rope(x, starts, frequencies(d), rotation, stream());
        make_kernels_under_test(4)->rope(moved, starts, frequencies(d), rotation, stream());
        expect_close(x, expected, "head_dim " + std::to_string(d));
        EXPECT_EQ(moved.bits(), x.bits());
      }
    }
  }
}

// --- Column sums

TEST_F(CudaRows, SumColumnsForBiases) {
  for (DType dtype : storages) {
    for (std::int64_t t : {1, 31, 100}) {
      for (std::int64_t n : {1, 8, 63, 200}) {
        const Tensor dy = random_normal(random_, dtype, {t, n}), db(dtype, {n}),
                     same(dtype, {n}, 1), expected(DType::f64, {n});
        ref_->bias_backward(dy, expected, stream());
        make_kernels_under_test(0)->bias_backward(dy, db, stream());
        make_kernels_under_test(3)->bias_backward(placed(dy, 1), same, stream());
        expect_close(db, expected, "db");
        EXPECT_EQ(same.bits(), db.bits());
      }
    }
  }
}

}  // namespace
}  // namespace strata::testing
