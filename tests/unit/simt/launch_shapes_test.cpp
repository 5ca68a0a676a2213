// Launch shapes fit every device that is supported, whatever the model's sizes.

#include <gtest/gtest.h>

#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/rmsnorm.cuh"

namespace strata::testing {
namespace {

TEST(NormShapes, FitEveryDeviceForEveryHiddenSize) {
  const cuda::DeviceLimits least;
  for (std::int64_t h : {64, 1024, 1032, 8192, 16384}) {
    cuda::with_team(h, [&](auto team) {
      EXPECT_LE(cuda::rmsnorm_backward_shape<team()>(8192, h).shared_bytes, least.shared_bytes_max);
      EXPECT_EQ(cuda::rmsnorm_forward_shape<team()>(8192).grid_x, 8192 * team() / 8);
    });
  }
}

TEST(AttentionShapes, FitEveryDevice) {
  const cuda::DeviceLimits least;
  cuda::with_head_dim(128, [&](auto d) {
    EXPECT_LE(cuda::attention_forward_shape<d()>(8192, 32).shared_bytes, 48 * 1024);
    EXPECT_LE(cuda::attention_dq_shape<d()>(8192, 32).shared_bytes, least.shared_bytes_max / 2);
    EXPECT_LE(cuda::attention_dkv_shape<d()>(8192, 8).shared_bytes, least.shared_bytes_max / 2);
    EXPECT_EQ(cuda::attention_forward_shape<d()>(8193, 32).grid_x, 129);
  });
}

TEST(AttentionShapes, TakeTensorCoresForBf16AndTheUsualHeadsOnly) {
  alignas(16) std::byte memory[16];
  const auto args = [&](DType dtype, std::int64_t d, int offset) {
    AttentionArgs result;
    for (TensorView* view : {&result.q_tqd, &result.k_tgd, &result.v_tgd, &result.out_tqd})
      *view = {memory + offset, dtype, {1, 1, d}};
    return result;
  };
  for (std::int64_t d : {64, 128}) {
    EXPECT_TRUE(cuda::runs_on_tensor_cores(args(DType::bf16, d, 0)));
    EXPECT_FALSE(cuda::runs_on_tensor_cores(args(DType::bf16, d, 2)));
    EXPECT_FALSE(cuda::runs_on_tensor_cores(args(DType::f32, d, 0)));
  }
  EXPECT_FALSE(cuda::runs_on_tensor_cores(args(DType::bf16, 80, 0)));
}

}  // namespace
}  // namespace strata::testing
