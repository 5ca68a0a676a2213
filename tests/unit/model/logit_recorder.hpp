#pragma once
// Kernels that pass every call on and keep the logits and token losses that cross_entropy saw and
// gave.

#include <vector>

#include "strata/kernels/kernels.hpp"

namespace strata::test {

class LogitRecorder : public Kernels {
 public:
  explicit LogitRecorder(Kernels& kernels) : kernels_(kernels) {}

  std::vector<float> logits, losses;  // in token order

  void cross_entropy(const CrossEntropyArgs& args, Stream& stream) override {
    append(args.logits_cv, logits);
    kernels_.cross_entropy(args, stream);
    append(args.losses_c, losses);
  }

  std::string_view name() const override { return kernels_.name(); }
  void embedding_forward(TensorView tokens_t, TensorView table_vh, TensorView out_th,
                         Stream& stream) override {
    kernels_.embedding_forward(tokens_t, table_vh, out_th, stream);
  }
  void embedding_backward(TensorView tokens_t, TensorView dout_th, TensorView dtable_vh,
                          std::span<std::byte> scratch, Stream& stream) override {
    kernels_.embedding_backward(tokens_t, dout_th, dtable_vh, scratch, stream);
  }
  std::uint64_t embedding_scratch_bytes(std::int64_t t, std::int64_t v,
                                        std::int64_t h) const override {
    return kernels_.embedding_scratch_bytes(t, v, h);
  }
  void rmsnorm_forward(TensorView x_th, TensorView w_h, float epsilon, TensorView y_th,
                       TensorView rstd_t, Stream& stream) override {
    kernels_.rmsnorm_forward(x_th, w_h, epsilon, y_th, rstd_t, stream);
  }
  void rmsnorm_backward(TensorView dy_th, TensorView x_th, TensorView w_h, TensorView rstd_t,
                        TensorView dx_th, Accumulate accumulate_dx, TensorView dw_h,
                        std::span<std::byte> scratch, Stream& stream) override {
    kernels_.rmsnorm_backward(dy_th, x_th, w_h, rstd_t, dx_th, accumulate_dx, dw_h, scratch,
                              stream);
  }
  std::uint64_t rmsnorm_scratch_bytes(std::int64_t t, std::int64_t h) const override {
    return kernels_.rmsnorm_scratch_bytes(t, h);
  }
  void linear_forward(TensorView x_tk, TensorView w_nk, TensorView bias_n, TensorView y_tn,
                      Accumulate accumulate, Stream& stream) override {
    kernels_.linear_forward(x_tk, w_nk, bias_n, y_tn, accumulate, stream);
  }
  void linear_backward_input(TensorView dy_tn, TensorView w_nk, TensorView dx_tk,
                             Accumulate accumulate, Stream& stream) override {
    kernels_.linear_backward_input(dy_tn, w_nk, dx_tk, accumulate, stream);
  }
  void linear_backward_weight(TensorView dy_tn, TensorView x_tk, TensorView dw_nk,
                              Accumulate accumulate, Stream& stream) override {
    kernels_.linear_backward_weight(dy_tn, x_tk, dw_nk, accumulate, stream);
  }
  void bias_backward(TensorView dy_tn, TensorView db_n, Stream& stream) override {
    kernels_.bias_backward(dy_tn, db_n, stream);
  }
  void rope(TensorView x_thd, TensorView document_start_t,
            std::span<const float> inverse_frequencies, Rotation rotation,
            Stream& stream) override {
    kernels_.rope(x_thd, document_start_t, inverse_frequencies, rotation, stream);
  }
  void attention_forward(const AttentionArgs& args, Stream& stream) override {
    kernels_.attention_forward(args, stream);
  }
  void attention_backward(const AttentionArgs& args, Stream& stream) override {
    kernels_.attention_backward(args, stream);
  }
  std::uint64_t attention_scratch_bytes(std::int64_t t, std::int64_t q, std::int64_t g,
                                        std::int64_t d) const override {
    return kernels_.attention_scratch_bytes(t, q, g, d);
  }
  void swiglu_forward(TensorView gate_tf, TensorView up_tf, TensorView y_tf,
                      Stream& stream) override {
    kernels_.swiglu_forward(gate_tf, up_tf, y_tf, stream);
  }
  void swiglu_backward(TensorView dy_tf, TensorView gate_tf, TensorView up_tf, TensorView dgate_tf,
                       TensorView dup_tf, Stream& stream) override {
    kernels_.swiglu_backward(dy_tf, gate_tf, up_tf, dgate_tf, dup_tf, stream);
  }
  void add(TensorView a, TensorView b, TensorView out, Stream& stream) override {
    kernels_.add(a, b, out, stream);
  }
  void cast(TensorView source, TensorView target, Stream& stream) override {
    kernels_.cast(source, target, stream);
  }
  void sum(TensorView values_t, TensorView total, Stream& stream) override {
    kernels_.sum(values_t, total, stream);
  }
  void cast_weight(TensorView master, TensorView weight, Stream& stream) override {
    kernels_.cast_weight(master, weight, stream);
  }
  void accumulate(TensorView source, TensorView target, Accumulate accumulate,
                  Stream& stream) override {
    kernels_.accumulate(source, target, accumulate, stream);
  }
  void square_sums(TensorView values, TensorView partials, Stream& stream) override {
    kernels_.square_sums(values, partials, stream);
  }
  void update(const UpdateArgs& args, Stream& stream) override { kernels_.update(args, stream); }

 private:
  static void append(const TensorView& values, std::vector<float>& target) {
    target.insert(target.end(), values.as<float>(), values.as<float>() + values.count());
  }

  Kernels& kernels_;
};

}  // namespace strata::test
