#include "kernels/cuda/cuda_kernels.hpp"

#include "kernels/cuda/cuda_launch.cuh"
#include "kernels/cuda/cuda_ops.hpp"
#include "kernels/cuda/gemm.hpp"
#include "strata/device/device.hpp"

namespace strata::cuda {
namespace {

class CudaKernels final : public Kernels {
 public:
  explicit CudaKernels(const CudaKernelsOptions& options)
      : limits_(limits_of(options.ordinal)), gemm_(options.workspace) {}
  std::string_view name() const override { return "cuda"; }

  void embedding_forward(TensorView tokens_t, TensorView table_vh, TensorView out_th,
                         Stream& stream) override {
    CudaLaunch launch = on(stream);
    cuda::embedding_forward(launch, tokens_t, table_vh, out_th);
  }
  void embedding_backward(TensorView tokens_t, TensorView dout_th, TensorView dtable_vh,
                          std::span<std::byte> scratch, Stream& stream) override {
    CudaLaunch launch = on(stream);
    cuda::embedding_backward(launch, tokens_t, dout_th, dtable_vh, scratch);
  }
  std::uint64_t embedding_scratch_bytes(std::int64_t, std::int64_t v, std::int64_t) const override {
    return cuda::embedding_scratch_bytes(v);
  }

  void rmsnorm_forward(TensorView x_th, TensorView w_h, float epsilon, TensorView y_th,
                       TensorView rstd_t, Stream& stream) override {
    CudaLaunch launch = on(stream);
    cuda::rmsnorm_forward(launch, x_th, w_h, epsilon, y_th, rstd_t);
  }
  void rmsnorm_backward(TensorView dy_th, TensorView x_th, TensorView w_h, TensorView rstd_t,
                        TensorView dx_th, Accumulate accumulate_dx, TensorView dw_h,
                        std::span<std::byte> scratch, Stream& stream) override {
    CudaLaunch launch = on(stream);
    cuda::rmsnorm_backward(launch, dy_th, x_th, w_h, rstd_t, dx_th, accumulate_dx, dw_h, scratch);
  }
  std::uint64_t rmsnorm_scratch_bytes(std::int64_t t, std::int64_t h) const override {
    return cuda::rmsnorm_scratch_bytes(t, h);
  }

  void linear_forward(TensorView x_tk, TensorView w_nk, TensorView bias_n, TensorView y_tn,
                      Accumulate accumulate, Stream& stream) override {
    CudaLaunch launch = on(stream);
    gemm_.linear_forward(launch, x_tk, w_nk, bias_n, y_tn, accumulate);
  }
  void linear_backward_input(TensorView dy_tn, TensorView w_nk, TensorView dx_tk,
                             Accumulate accumulate, Stream& stream) override {
    CudaLaunch launch = on(stream);
    gemm_.linear_backward_input(launch, dy_tn, w_nk, dx_tk, accumulate);
  }
  void linear_backward_weight(TensorView dy_tn, TensorView x_tk, TensorView dw_nk,
                              Accumulate accumulate, Stream& stream) override {
    CudaLaunch launch = on(stream);
    gemm_.linear_backward_weight(launch, dy_tn, x_tk, dw_nk, accumulate);
  }
  void bias_backward(TensorView dy_tn, TensorView db_n, Stream& stream) override {
    CudaLaunch launch = on(stream);
    cuda::bias_backward(launch, dy_tn, db_n);
  }

  void rope(TensorView x_thd, TensorView document_start_t,
            std::span<const float> inverse_frequencies, Rotation rotation,
            Stream& stream) override {
    CudaLaunch launch = on(stream);
    cuda::rope(launch, x_thd, document_start_t, inverse_frequencies, rotation);
  }
  void attention_forward(const AttentionArgs& args, Stream& stream) override {
    CudaLaunch launch = on(stream);
    cuda::attention_forward(launch, args);
  }
  void attention_backward(const AttentionArgs& args, Stream& stream) override {
    CudaLaunch launch = on(stream);
    cuda::attention_backward(launch, args);
  }
  std::uint64_t attention_scratch_bytes(std::int64_t t, std::int64_t q, std::int64_t,
                                        std::int64_t) const override {
    return cuda::attention_scratch_bytes(t, q);
  }

  void swiglu_forward(TensorView gate_tf, TensorView up_tf, TensorView y_tf,
                      Stream& stream) override {
    CudaLaunch launch = on(stream);
    cuda::swiglu_forward(launch, gate_tf, up_tf, y_tf);
  }
  void swiglu_backward(TensorView dy_tf, TensorView gate_tf, TensorView up_tf, TensorView dgate_tf,
                       TensorView dup_tf, Stream& stream) override {
    CudaLaunch launch = on(stream);
    cuda::swiglu_backward(launch, dy_tf, gate_tf, up_tf, dgate_tf, dup_tf);
  }
  void cross_entropy(const CrossEntropyArgs& args, Stream& stream) override {
    CudaLaunch launch = on(stream);
    cuda::cross_entropy(launch, args);
  }

  void add(TensorView a, TensorView b, TensorView out, Stream& stream) override {
    CudaLaunch launch = on(stream);
    cuda::add(launch, a, b, out);
  }
  void cast(TensorView source, TensorView target, Stream& stream) override {
    CudaLaunch launch = on(stream);
    cuda::cast(launch, source, target);
  }
  void sum(TensorView values_t, TensorView total, Stream& stream) override {
    CudaLaunch launch = on(stream);
    cuda::sum(launch, values_t, total);
  }
  void cast_weight(TensorView master, TensorView weight, Stream& stream) override {
    CudaLaunch launch = on(stream);
    cuda::cast_weight(launch, master, weight);
  }
  void accumulate(TensorView source, TensorView target, Accumulate accumulate,
                  Stream& stream) override {
    CudaLaunch launch = on(stream);
    cuda::accumulate(launch, source, target, accumulate);
  }
  void square_sums(TensorView values, TensorView partials, Stream& stream) override {
    CudaLaunch launch = on(stream);
    cuda::square_sums(launch, values, partials);
  }
  void update(const UpdateArgs& args, Stream& stream) override {
    CudaLaunch launch = on(stream);
    cuda::update(launch, args);
  }

 private:
  CudaLaunch on(Stream& stream) const {
    return {static_cast<cudaStream_t>(stream.native()), limits_};
  }

  DeviceLimits limits_;
  CudaGemm gemm_;
};

}  // namespace

std::unique_ptr<Kernels> make_cuda_kernels(const CudaKernelsOptions& options) {
  return std::make_unique<CudaKernels>(options);
}

}  // namespace strata::cuda
