#include "kernels/cuda/blas_library.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <vector>

#include "kernels/cuda/blas_version.hpp"
#include "strata/core/error.hpp"
#include "strata/core/shared_library.hpp"

namespace strata::cuda {
namespace {

static_assert(CUBLAS_VER_MAJOR == blas_major_preferred || CUBLAS_VER_MAJOR == blas_major_oldest,
              "look at what has changed in cublasLt.h since");

// Where toolkits put it, for machines that do not tell the loader.
std::vector<std::string> toolkit_folders() {
  std::vector<std::string> folders;
  for (const char* variable : {"CUDA_PATH", "CUDA_HOME"})
    if (const char* root = std::getenv(variable)) folders.push_back(std::string(root) + "/lib64");
  folders.emplace_back("/usr/local/cuda/lib64");
  return folders;
}

void take_functions(const SharedLibrary& library, BlasLibrary& blas) {
  library.find("cublasLtCreate", blas.create);
  library.find("cublasLtDestroy", blas.destroy);
  library.find("cublasLtGetStatusString", blas.status_text);
  library.find("cublasLtMatrixLayoutCreate", blas.layout_create);
  library.find("cublasLtMatrixLayoutDestroy", blas.layout_destroy);
  library.find("cublasLtMatmulDescCreate", blas.operation_create);
  library.find("cublasLtMatmulDescDestroy", blas.operation_destroy);
  library.find("cublasLtMatmulDescSetAttribute", blas.operation_set);
  library.find("cublasLtMatmulPreferenceCreate", blas.preference_create);
  library.find("cublasLtMatmulPreferenceDestroy", blas.preference_destroy);
  library.find("cublasLtMatmulPreferenceSetAttribute", blas.preference_set);
  library.find("cublasLtMatmulAlgoGetHeuristic", blas.find_algorithms);
  library.find("cublasLtMatmul", blas.multiply);
}

BlasLibrary load_blas_library() {
  const std::array names = {fmt::format("libcublasLt.so.{}", blas_major_preferred),
                            fmt::format("libcublasLt.so.{}", blas_major_oldest)};
  const SharedLibrary library(
      "cuBLASLt, which multiplies matrices on a GPU,", names, toolkit_folders(),
      "install cuBLAS of CUDA 13 or 12.8, or name its folder in LD_LIBRARY_PATH");
  BlasLibrary blas{};
  blas.path = library.path();
  decltype(&cublasLtGetVersion) version = nullptr;
  library.find("cublasLtGetVersion", version);
  blas.version = version();
  if (!is_usable_blas(blas.version))
    throw ConfigError(fmt::format("{} is cuBLASLt {}: 13, or 12 from 12.8 on, is needed", blas.path,
                                  blas_version_text(blas.version)));
  take_functions(library, blas);
  return blas;
}

}  // namespace

const BlasLibrary& blas_library() {
  static const BlasLibrary library = load_blas_library();
  return library;
}

}  // namespace strata::cuda
