#include "simt/emulated_kernels.hpp"

#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/column_sums.cuh"
#include "kernels/cuda/cross_entropy.cuh"
#include "kernels/cuda/elementwise.cuh"
#include "kernels/cuda/embedding.cuh"
#include "kernels/cuda/rmsnorm.cuh"
#include "kernels/cuda/rope.cuh"
#include "kernels/cuda/sums.cuh"
#include "kernels/cuda/swiglu.cuh"
#include "kernels/cuda/update.cuh"
#include "kernels/ref/ref_ops.hpp"
#include "simt/emulator.hpp"

namespace strata::simt {
namespace {

class EmulatedKernels final : public Kernels {
 public:
  explicit EmulatedKernels(std::uint64_t seed) : emulator_(seed) {}
  std::string_view name() const override { return "emulated cuda"; }

  void embedding_forward(TensorView tokens_t, TensorView table_vh, TensorView out_th,
                         Stream&) override {
    cuda::launch_embedding_forward(emulator_, tokens_t, table_vh, out_th);
  }
  void embedding_backward(TensorView tokens_t, TensorView dout_th, TensorView dtable_vh,
                          std::span<std::byte> scratch, Stream&) override {
    cuda::launch_embedding_backward(emulator_, tokens_t, dout_th, dtable_vh, scratch);
  }
  std::uint64_t embedding_scratch_bytes(std::int64_t, std::int64_t v, std::int64_t) const override {
    return cuda::embedding_scratch_size(v);
  }

  void rmsnorm_forward(TensorView x_th, TensorView w_h, float epsilon, TensorView y_th,
                       TensorView rstd_t, Stream&) override {
    cuda::launch_rmsnorm_forward(emulator_, x_th, w_h, epsilon, y_th, rstd_t);
  }
  void rmsnorm_backward(TensorView dy_th, TensorView x_th, TensorView w_h, TensorView rstd_t,
                        TensorView dx_th, Accumulate accumulate_dx, TensorView dw_h,
                        std::span<std::byte> scratch, Stream&) override {
    cuda::launch_rmsnorm_backward(emulator_, dy_th, x_th, w_h, rstd_t, dx_th, accumulate_dx, dw_h,
                                  scratch);
  }
  std::uint64_t rmsnorm_scratch_bytes(std::int64_t t, std::int64_t h) const override {
    return cuda::rmsnorm_scratch_size(t, h);
  }

  void bias_backward(TensorView dy_tn, TensorView db_n, Stream&) override {
    cuda::launch_bias_backward(emulator_, dy_tn, db_n);
  }
  void rope(TensorView x_thd, TensorView document_start_t,
            std::span<const float> inverse_frequencies, Rotation rotation, Stream&) override {
    cuda::launch_rope(emulator_, x_thd, document_start_t, inverse_frequencies, rotation);
  }
  void attention_forward(const AttentionArgs& args, Stream&) override {
    cuda::launch_attention_forward(emulator_, args);
  }
  void attention_backward(const AttentionArgs& args, Stream&) override {
    cuda::launch_attention_backward(emulator_, args);
  }
  std::uint64_t attention_scratch_bytes(std::int64_t t, std::int64_t q, std::int64_t,
                                        std::int64_t) const override {
    return cuda::attention_scratch_size(t, q);
  }
  void swiglu_forward(TensorView gate_tf, TensorView up_tf, TensorView y_tf, Stream&) override {
    cuda::launch_swiglu_forward(emulator_, gate_tf, up_tf, y_tf);
  }
  void swiglu_backward(TensorView dy_tf, TensorView gate_tf, TensorView up_tf, TensorView dgate_tf,
                       TensorView dup_tf, Stream&) override {
    cuda::launch_swiglu_backward(emulator_, dy_tf, gate_tf, up_tf, dgate_tf, dup_tf);
  }
  void cross_entropy(const CrossEntropyArgs& args, Stream&) override {
    cuda::launch_cross_entropy(emulator_, args);
  }

  // --- A library's on a device.
  void linear_forward(TensorView x_tk, TensorView w_nk, TensorView bias_n, TensorView y_tn,
                      Accumulate accumulate, Stream&) override {
    ref::linear_forward(x_tk, w_nk, bias_n, y_tn, accumulate);
  }
  void linear_backward_input(TensorView dy_tn, TensorView w_nk, TensorView dx_tk,
                             Accumulate accumulate, Stream&) override {
    ref::linear_backward_input(dy_tn, w_nk, dx_tk, accumulate);
  }
  void linear_backward_weight(TensorView dy_tn, TensorView x_tk, TensorView dw_nk,
                              Accumulate accumulate, Stream&) override {
    ref::linear_backward_weight(dy_tn, x_tk, dw_nk, accumulate);
  }

  // --- Element by element, and the exact family.
  void add(TensorView a, TensorView b, TensorView out, Stream&) override {
    cuda::launch_add(emulator_, a, b, out);
  }
  void cast(TensorView source, TensorView target, Stream&) override {
    cuda::launch_cast(emulator_, source, target);
  }
  void sum(TensorView values_t, TensorView total, Stream&) override {
    cuda::launch_sum(emulator_, values_t, total);
  }
  void cast_weight(TensorView master, TensorView weight, Stream&) override {
    cuda::launch_cast_weight(emulator_, master, weight);
  }
  void accumulate(TensorView source, TensorView target, Accumulate accumulate, Stream&) override {
    cuda::launch_accumulate(emulator_, source, target, accumulate);
  }
  void square_sums(TensorView values, TensorView partials, Stream&) override {
    cuda::launch_square_sums(emulator_, values, partials);
  }
  void update(const UpdateArgs& args, Stream&) override { cuda::launch_update(emulator_, args); }

 private:
  Emulator emulator_;
};

}  // namespace

std::unique_ptr<Kernels> make_emulated_kernels(std::uint64_t seed) {
  return std::make_unique<EmulatedKernels>(seed);
}

}  // namespace strata::simt
