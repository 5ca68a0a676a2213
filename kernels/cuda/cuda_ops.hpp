#pragma once
// The ops of Kernels on a CUDA stream, one source file a group, with the semantics of
// kernels.hpp; they return when the work is queued. Needs no CUDA to be included.

#include <span>

#include "strata/kernels/kernels.hpp"

namespace strata::cuda {

class CudaLaunch;

void embedding_forward(CudaLaunch& launch, const TensorView& tokens_t, const TensorView& table_vh,
                       const TensorView& out_th);
void embedding_backward(CudaLaunch& launch, const TensorView& tokens_t, const TensorView& dout_th,
                        const TensorView& dtable_vh, std::span<std::byte> scratch);
std::uint64_t embedding_scratch_bytes(std::int64_t v);

void rmsnorm_forward(CudaLaunch& launch, const TensorView& x_th, const TensorView& w_h,
                     float epsilon, const TensorView& y_th, const TensorView& rstd_t);
void rmsnorm_backward(CudaLaunch& launch, const TensorView& dy_th, const TensorView& x_th,
                      const TensorView& w_h, const TensorView& rstd_t, const TensorView& dx_th,
                      Accumulate accumulate_dx, const TensorView& dw_h,
                      std::span<std::byte> scratch);
std::uint64_t rmsnorm_scratch_bytes(std::int64_t t, std::int64_t h);

void bias_backward(CudaLaunch& launch, const TensorView& dy_tn, const TensorView& db_n);

void rope(CudaLaunch& launch, const TensorView& x_thd, const TensorView& document_start_t,
          std::span<const float> inverse_frequencies, Rotation rotation);

void attention_forward(CudaLaunch& launch, const AttentionArgs& args);
void attention_backward(CudaLaunch& launch, const AttentionArgs& args);
std::uint64_t attention_scratch_bytes(std::int64_t t, std::int64_t q);

void swiglu_forward(CudaLaunch& launch, const TensorView& gate_tf, const TensorView& up_tf,
                    const TensorView& y_tf);
void swiglu_backward(CudaLaunch& launch, const TensorView& dy_tf, const TensorView& gate_tf,
                     const TensorView& up_tf, const TensorView& dgate_tf, const TensorView& dup_tf);

void cross_entropy(CudaLaunch& launch, const CrossEntropyArgs& args);

void add(CudaLaunch& launch, const TensorView& a, const TensorView& b, const TensorView& out);
void cast(CudaLaunch& launch, const TensorView& source, const TensorView& target);
void sum(CudaLaunch& launch, const TensorView& values_t, const TensorView& total);

void cast_weight(CudaLaunch& launch, const TensorView& master, const TensorView& weight);
void accumulate(CudaLaunch& launch, const TensorView& source, const TensorView& target,
                Accumulate accumulate);
void square_sums(CudaLaunch& launch, const TensorView& values, const TensorView& partials);
void update(CudaLaunch& launch, const UpdateArgs& args);

}  // namespace strata::cuda
