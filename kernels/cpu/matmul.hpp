#pragma once
// One matrix product on the calling thread by oneDNN, for the tasks of a Parallel: no threads of
// oneDNN's own are used. Compiled products are kept per thread and shape, so a repeated shape
// allocates nothing of ours. Thread contract: may be called from several threads at once.

#include <cstdint>

#include "strata/kernels/kernels.hpp"

namespace strata::cpu {

// A matrix stored by rows (column_stride 1) or by columns (row_stride 1), in f32 or bf16. Strides
// count elements.
struct Matrix {
  const void* data = nullptr;
  std::int64_t row_stride = 0, column_stride = 1;
  DType dtype = DType::f32;
};

// c_mn (+)= a_mk b_kn + bias_n. a and b have one dtype; c may be f32 while they are bf16. c is
// stored by rows.
struct Matmul {
  std::int64_t m = 0, n = 0, k = 0;
  Matrix a_mk, b_kn;
  void* c_mn = nullptr;
  std::int64_t c_row_stride = 0;
  DType c_dtype = DType::f32;
  const void* bias_n = nullptr;  // of the dtype of a and b; null: none
  Accumulate accumulate = Accumulate::no;
};

// Uses the processor's bf16 instructions where it has them, else matmul_widened() for bf16.
void matmul(const Matmul& product);

// Widens bf16 to fp32, some of the summed dimension at a time, and multiplies in fp32: works on
// every processor.
void matmul_widened(const Matmul& product);

}  // namespace strata::cpu
