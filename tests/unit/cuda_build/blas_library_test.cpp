// How cuBLASLt is found, in builds with CUDA. No device is needed for it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/cuda/blas_library.hpp"
#include "kernels/cuda/blas_version.hpp"

namespace strata::cuda {
namespace {

using ::testing::HasSubstr;

TEST(BlasLibrary, IsThatOfTheToolkitAndHasAllThatProductsCall) {
  const BlasLibrary& blas = blas_library();
  EXPECT_THAT(blas.path, HasSubstr("libcublasLt.so."));
  EXPECT_EQ(blas.version / 10000, static_cast<std::size_t>(CUBLAS_VER_MAJOR));
  EXPECT_TRUE(is_usable_blas(blas.version));
  EXPECT_THAT(blas.status_text(CUBLAS_STATUS_NOT_SUPPORTED), HasSubstr("not supported"));
  EXPECT_EQ(&blas_library(), &blas) << "it is loaded once";
}

// The loaded library takes attributes by the numbers and sizes of our header, and no other sizes.
TEST(BlasLibrary, MakesDescriptorsWithoutADevice) {
  const BlasLibrary& blas = blas_library();
  cublasLtMatmulDesc_t product = nullptr;
  ASSERT_EQ(blas.operation_create(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F), CUBLAS_STATUS_SUCCESS);
  const cublasOperation_t transposed = CUBLAS_OP_T;
  EXPECT_EQ(
      blas.operation_set(product, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed),
      CUBLAS_STATUS_SUCCESS);
  EXPECT_NE(blas.operation_set(product, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, 1),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(blas.operation_destroy(product), CUBLAS_STATUS_SUCCESS);
}

TEST(BlasVersion, IsThirteenOrTwelveFromTwelveEightOn) {
  EXPECT_TRUE(is_usable_blas(130100));
  EXPECT_TRUE(is_usable_blas(120804));
  EXPECT_FALSE(is_usable_blas(120709));
  EXPECT_FALSE(is_usable_blas(110803));
  EXPECT_FALSE(is_usable_blas(140000));
  EXPECT_EQ(blas_version_text(120804), "12.8.4");
}

}  // namespace
}  // namespace strata::cuda
