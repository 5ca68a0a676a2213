#pragma once
// The functions of cuBLASLt that matrix products call, from a library that is loaded when it is
// first asked for: the program starts without it. For kernels/cuda alone.
//
// Taken are cuBLASLt 13 and, where there is none, 12 from 12.8 on: all descriptors are opaque and
// made by the library, and the structures and numbers that products pass (attributes of products
// and preferences, types, epilogues, an algorithm's 64 bytes) are the same in both.

#include <cublasLt.h>

#include <string>

namespace strata::cuda {

struct BlasLibrary {
  std::string path;         // as the loader found it
  std::size_t version = 0;  // 130100 is 13.1.0

  decltype(&cublasLtCreate) create;
  decltype(&cublasLtDestroy) destroy;
  decltype(&cublasLtGetStatusString) status_text;
  decltype(&cublasLtMatrixLayoutCreate) layout_create;
  decltype(&cublasLtMatrixLayoutDestroy) layout_destroy;
  decltype(&cublasLtMatmulDescCreate) operation_create;
  decltype(&cublasLtMatmulDescDestroy) operation_destroy;
  decltype(&cublasLtMatmulDescSetAttribute) operation_set;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create;
  decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set;
  decltype(&cublasLtMatmulAlgoGetHeuristic) find_algorithms;
  decltype(&cublasLtMatmul) multiply;
};

// Throws ConfigError when there is no such library, or another version's. Thread contract: any
// thread.
const BlasLibrary& blas_library();

}  // namespace strata::cuda
