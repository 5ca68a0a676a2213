#pragma once
// Which versions of cuBLASLt products may call. Plain code, tested without CUDA.

#include <fmt/format.h>

#include <cstddef>
#include <string>

namespace strata::cuda {

inline constexpr int blas_major_preferred = 13, blas_major_oldest = 12, blas_minor_oldest = 8;

// As cublasLtGetVersion() tells them: 120804 is 12.8.4.
constexpr bool is_usable_blas(std::size_t version) {
  return version >= blas_major_oldest * 10000u + blas_minor_oldest * 100u &&
         version < (blas_major_preferred + 1) * 10000u;
}

inline std::string blas_version_text(std::size_t version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace strata::cuda
