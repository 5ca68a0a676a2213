#include "kernels/cuda/blas_library.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <vector>

#include "kernels/cuda/blas_version.hpp"
#include "kernels/cuda/shared_library.hpp"
#include "strata/core/error.hpp"

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

template <class Function>
void take(const SharedLibrary& library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(library.symbol(name));
}

void take_functions(const SharedLibrary& library, BlasLibrary& blas) {
  take(library, "cublasLtCreate", blas.create);
  take(library, "cublasLtDestroy", blas.destroy);
  take(library, "cublasLtGetStatusString", blas.status_text);
  take(library, "cublasLtMatrixLayoutCreate", blas.layout_create);
  take(library, "cublasLtMatrixLayoutDestroy", blas.layout_destroy);
  take(library, "cublasLtMatmulDescCreate", blas.operation_create);
  take(library, "cublasLtMatmulDescDestroy", blas.operation_destroy);
  take(library, "cublasLtMatmulDescSetAttribute", blas.operation_set);
  take(library, "cublasLtMatmulPreferenceCreate", blas.preference_create);
  take(library, "cublasLtMatmulPreferenceDestroy", blas.preference_destroy);
  take(library, "cublasLtMatmulPreferenceSetAttribute", blas.preference_set);
  take(library, "cublasLtMatmulAlgoGetHeuristic", blas.find_algorithms);
  take(library, "cublasLtMatmul", blas.multiply);
}

BlasLibrary load_blas_library() {
  const std::array names = {fmt::format("libcublasLt.so.{}", blas_major_preferred),
                            fmt::format("libcublasLt.so.{}", blas_major_oldest)};
  const SharedLibrary library(
      names, toolkit_folders(),
      "matrix products on a GPU are cuBLASLt's: install cuBLAS of CUDA 13 or "
      "12.8, or name its folder in LD_LIBRARY_PATH");
  BlasLibrary blas{};
  blas.path = library.path();
  decltype(&cublasLtGetVersion) version = nullptr;
  take(library, "cublasLtGetVersion", version);
  blas.version = version();
  if (!is_usable_blas(blas.version))
    throw Error(fmt::format("{} is cuBLASLt {}: 13, or 12 from 12.8 on, is needed", blas.path,
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
