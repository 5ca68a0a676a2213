#pragma once
// Matrix products by cuBLASLt. The algorithm of a product is asked for once and kept. The question
// holds nothing of where operands lie but whether all start on 16 bytes, which is a matter of their
// block's layout, so placement leads to no other algorithm, and so to no other bits. Reductions are
// in fp32.
// Thread contract: any thread; products on one stream at a time, as they share the workspace.

#include <cstddef>
#include <memory>
#include <span>

#include "kernels/cuda/gemm_problem.hpp"

namespace strata::cuda {

class CudaLaunch;

class CudaGemm {
 public:
  // The workspace is device memory of the caller's, on 256 bytes. Throws Error without a device.
  explicit CudaGemm(std::span<std::byte> workspace);
  ~CudaGemm();
  CudaGemm(const CudaGemm&) = delete;
  CudaGemm& operator=(const CudaGemm&) = delete;

  void linear_forward(CudaLaunch& launch, const TensorView& x_tk, const TensorView& w_nk,
                      const TensorView& bias_n, const TensorView& y_tn, Accumulate accumulate);
  void linear_backward_input(CudaLaunch& launch, const TensorView& dy_tn, const TensorView& w_nk,
                             const TensorView& dx_tk, Accumulate accumulate);
  void linear_backward_weight(CudaLaunch& launch, const TensorView& dy_tn, const TensorView& x_tk,
                              const TensorView& dw_nk, Accumulate accumulate);

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

}  // namespace strata::cuda
