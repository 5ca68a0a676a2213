// The host's fast back end: each op is a function of its own file; this class lends them its
// threads.

#include "kernels/cpu/attention.hpp"
#include "kernels/cpu/cross_entropy.hpp"
#include "kernels/cpu/elementwise.hpp"
#include "kernels/cpu/embedding.hpp"
#include "kernels/cpu/exact.hpp"
#include "kernels/cpu/gemm.hpp"
#include "kernels/cpu/parallel.hpp"
#include "kernels/cpu/rmsnorm.hpp"
#include "kernels/cpu/rope.hpp"
#include "kernels/cpu/swiglu.hpp"
#include "kernels/cpu/update.hpp"
#include "strata/kernels/kernels.hpp"

namespace strata {
namespace {

cpu::Parallel make_pool(const CpuKernelsOptions& options) {
  if (options.threads_of_node.empty())
    return cpu::Parallel(options.num_threads, options.on_thread_start);
  return cpu::Parallel(options.threads_of_node, options.on_thread_start);
}

class CpuKernels final : public Kernels {
 public:
  explicit CpuKernels(const CpuKernelsOptions& options) : parallel_(make_pool(options)) {}
  std::string_view name() const override { return "cpu"; }

  void embedding_forward(TensorView tokens_t, TensorView table_vh, TensorView out_th,
                         Stream&) override {
    cpu::embedding_forward(parallel_, tokens_t, table_vh, out_th);
  }
  void embedding_backward(TensorView tokens_t, TensorView dout_th, TensorView dtable_vh,
                          std::span<std::byte> scratch, Stream&) override {
    cpu::embedding_backward(parallel_, tokens_t, dout_th, dtable_vh, scratch);
  }
  std::uint64_t embedding_scratch_bytes(std::int64_t t, std::int64_t, std::int64_t) const override {
    return cpu::embedding_scratch_bytes(t);
  }

  void rmsnorm_forward(TensorView x_th, TensorView w_h, float epsilon, TensorView y_th,
                       TensorView rstd_t, Stream&) override {
    cpu::rmsnorm_forward(parallel_, x_th, w_h, epsilon, y_th, rstd_t);
  }
  void rmsnorm_backward(TensorView dy_th, TensorView x_th, TensorView w_h, TensorView rstd_t,
                        TensorView dx_th, Accumulate accumulate_dx, TensorView dw_h,
                        std::span<std::byte> scratch, Stream&) override {
    cpu::rmsnorm_backward(parallel_, dy_th, x_th, w_h, rstd_t, dx_th, accumulate_dx, dw_h, scratch);
  }
  std::uint64_t rmsnorm_scratch_bytes(std::int64_t t, std::int64_t h) const override {
    return cpu::rmsnorm_scratch_bytes(t, h);
  }

  void linear_forward(TensorView x_tk, TensorView w_nk, TensorView bias_n, TensorView y_tn,
                      Accumulate accumulate, Stream&) override {
    cpu::linear_forward(parallel_, x_tk, w_nk, bias_n, y_tn, accumulate);
  }
  void linear_backward_input(TensorView dy_tn, TensorView w_nk, TensorView dx_tk,
                             Accumulate accumulate, Stream&) override {
    cpu::linear_backward_input(parallel_, dy_tn, w_nk, dx_tk, accumulate);
  }
  void linear_backward_weight(TensorView dy_tn, TensorView x_tk, TensorView dw_nk,
                              Accumulate accumulate, Stream&) override {
    cpu::linear_backward_weight(parallel_, dy_tn, x_tk, dw_nk, accumulate);
  }
  void bias_backward(TensorView dy_tn, TensorView db_n, Stream&) override {
    cpu::bias_backward(parallel_, dy_tn, db_n);
  }

  void rope(TensorView x_thd, TensorView document_start_t,
            std::span<const float> inverse_frequencies, Rotation rotation, Stream&) override {
    cpu::rope(parallel_, x_thd, document_start_t, inverse_frequencies, rotation);
  }
  void attention_forward(const AttentionArgs& args, Stream&) override {
    cpu::attention_forward(parallel_, args);
  }
  void attention_backward(const AttentionArgs& args, Stream&) override {
    cpu::attention_backward(parallel_, args);
  }
  std::uint64_t attention_scratch_bytes(std::int64_t t, std::int64_t q, std::int64_t g,
                                        std::int64_t d) const override {
    return cpu::attention_scratch_bytes(t, q, g, d);
  }

  void swiglu_forward(TensorView gate_tf, TensorView up_tf, TensorView y_tf, Stream&) override {
    cpu::swiglu_forward(parallel_, gate_tf, up_tf, y_tf);
  }
  void swiglu_backward(TensorView dy_tf, TensorView gate_tf, TensorView up_tf, TensorView dgate_tf,
                       TensorView dup_tf, Stream&) override {
    cpu::swiglu_backward(parallel_, dy_tf, gate_tf, up_tf, dgate_tf, dup_tf);
  }
  void cross_entropy(const CrossEntropyArgs& args, Stream&) override {
    cpu::cross_entropy(parallel_, args);
  }

  void add(TensorView a, TensorView b, TensorView out, Stream&) override {
    cpu::add(parallel_, a, b, out);
  }
  void cast(TensorView source, TensorView target, Stream&) override {
    cpu::cast(parallel_, source, target);
  }
  void sum(TensorView values_t, TensorView total, Stream&) override { cpu::sum(values_t, total); }

  void cast_weight(TensorView master, TensorView weight, Stream&) override {
    cpu::cast_weight(parallel_, master, weight);
  }
  void accumulate(TensorView source, TensorView target, Accumulate accumulate, Stream&) override {
    cpu::accumulate(parallel_, source, target, accumulate);
  }
  void square_sums(TensorView values, TensorView partials, Stream&) override {
    cpu::square_sums(parallel_, values, partials);
  }
  void update(const UpdateArgs& args, Stream&) override { cpu::update(parallel_, args); }

 private:
  cpu::Parallel parallel_;
};

}  // namespace

std::unique_ptr<Kernels> make_cpu_kernels(const CpuKernelsOptions& options) {
  return std::make_unique<CpuKernels>(options);
}

}  // namespace strata
