#include "support/staged_kernels.hpp"

#include <utility>

namespace strata::testing {
namespace {

class StagedKernels final : public Kernels {
 public:
  StagedKernels(StagingArena& arena, std::shared_ptr<Kernels> kernels)
      : arena_(arena), kernels_(std::move(kernels)) {}
  std::string_view name() const override { return kernels_->name(); }

  void embedding_forward(TensorView tokens_t, TensorView table_vh, TensorView out_th,
                         Stream&) override {
    StagedCall call(arena_, "embedding_forward");
    call.reads("tokens", tokens_t).reads("table", table_vh).writes("out", out_th);
    call.run([&] { kernels_->embedding_forward(tokens_t, table_vh, out_th, stream()); });
  }
  void embedding_backward(TensorView tokens_t, TensorView dout_th, TensorView dtable_vh,
                          std::span<std::byte> scratch, Stream&) override {
    StagedCall call(arena_, "embedding_backward");
    call.reads("tokens", tokens_t).reads("dout", dout_th).writes("dtable", dtable_vh);
    call.scratch(scratch).run(
        [&] { kernels_->embedding_backward(tokens_t, dout_th, dtable_vh, scratch, stream()); });
  }
  std::uint64_t embedding_scratch_bytes(std::int64_t t, std::int64_t v,
                                        std::int64_t h) const override {
    return kernels_->embedding_scratch_bytes(t, v, h);
  }

  void rmsnorm_forward(TensorView x_th, TensorView w_h, float epsilon, TensorView y_th,
                       TensorView rstd_t, Stream&) override {
    StagedCall call(arena_, "rmsnorm_forward");
    call.reads("x", x_th).reads("w", w_h).writes("y", y_th).writes("rstd", rstd_t);
    call.run([&] { kernels_->rmsnorm_forward(x_th, w_h, epsilon, y_th, rstd_t, stream()); });
  }
  void rmsnorm_backward(TensorView dy_th, TensorView x_th, TensorView w_h, TensorView rstd_t,
                        TensorView dx_th, Accumulate accumulate_dx, TensorView dw_h,
                        std::span<std::byte> scratch, Stream&) override {
    StagedCall call(arena_, "rmsnorm_backward");
    call.reads("dy", dy_th).reads("x", x_th).reads("w", w_h).reads("rstd", rstd_t);
    call.writes("dx", dx_th).writes("dw", dw_h).scratch(scratch).run([&] {
      kernels_->rmsnorm_backward(dy_th, x_th, w_h, rstd_t, dx_th, accumulate_dx, dw_h, scratch,
                                 stream());
    });
  }
  std::uint64_t rmsnorm_scratch_bytes(std::int64_t t, std::int64_t h) const override {
    return kernels_->rmsnorm_scratch_bytes(t, h);
  }

  void linear_forward(TensorView x_tk, TensorView w_nk, TensorView bias_n, TensorView y_tn,
                      Accumulate accumulate, Stream&) override {
    StagedCall call(arena_, "linear_forward");
    call.reads("x", x_tk).reads("w", w_nk).reads("bias", bias_n).writes("y", y_tn);
    call.run([&] { kernels_->linear_forward(x_tk, w_nk, bias_n, y_tn, accumulate, stream()); });
  }
  void linear_backward_input(TensorView dy_tn, TensorView w_nk, TensorView dx_tk,
                             Accumulate accumulate, Stream&) override {
    StagedCall call(arena_, "linear_backward_input");
    call.reads("dy", dy_tn).reads("w", w_nk).writes("dx", dx_tk);
    call.run([&] { kernels_->linear_backward_input(dy_tn, w_nk, dx_tk, accumulate, stream()); });
  }
  void linear_backward_weight(TensorView dy_tn, TensorView x_tk, TensorView dw_nk,
                              Accumulate accumulate, Stream&) override {
    StagedCall call(arena_, "linear_backward_weight");
    call.reads("dy", dy_tn).reads("x", x_tk).writes("dw", dw_nk);
    call.run([&] { kernels_->linear_backward_weight(dy_tn, x_tk, dw_nk, accumulate, stream()); });
  }
  void bias_backward(TensorView dy_tn, TensorView db_n, Stream&) override {
    StagedCall call(arena_, "bias_backward");
    call.reads("dy", dy_tn).writes("db", db_n);
    call.run([&] { kernels_->bias_backward(dy_tn, db_n, stream()); });
  }

  void rope(TensorView x_thd, TensorView document_start_t,
            std::span<const float> inverse_frequencies, Rotation rotation, Stream&) override {
    StagedCall call(arena_, "rope");
    call.writes("x", x_thd).reads("document_start", document_start_t);
    call.run(
        [&] { kernels_->rope(x_thd, document_start_t, inverse_frequencies, rotation, stream()); });
  }
  void attention_forward(const AttentionArgs& given, Stream&) override {
    AttentionArgs args = given;
    StagedCall call(arena_, "attention_forward");
    add_inputs(call, args);
    call.writes("out", args.out_tqd).writes("lse", args.lse_qt);
    call.reads("dq", args.dq_tqd).reads("dk", args.dk_tgd).reads("dv", args.dv_tgd);
    call.scratch(args.scratch).run([&] { kernels_->attention_forward(args, stream()); });
  }
  void attention_backward(const AttentionArgs& given, Stream&) override {
    AttentionArgs args = given;
    StagedCall call(arena_, "attention_backward");
    add_inputs(call, args);
    call.reads("out", args.out_tqd).reads("lse", args.lse_qt);
    call.writes("dq", args.dq_tqd).writes("dk", args.dk_tgd).writes("dv", args.dv_tgd);
    call.scratch(args.scratch).run([&] { kernels_->attention_backward(args, stream()); });
  }
  std::uint64_t attention_scratch_bytes(std::int64_t t, std::int64_t q, std::int64_t g,
                                        std::int64_t d) const override {
    return kernels_->attention_scratch_bytes(t, q, g, d);
  }

  void swiglu_forward(TensorView gate_tf, TensorView up_tf, TensorView y_tf, Stream&) override {
    StagedCall call(arena_, "swiglu_forward");
    call.reads("gate", gate_tf).reads("up", up_tf).writes("y", y_tf);
    call.run([&] { kernels_->swiglu_forward(gate_tf, up_tf, y_tf, stream()); });
  }
  void swiglu_backward(TensorView dy_tf, TensorView gate_tf, TensorView up_tf, TensorView dgate_tf,
                       TensorView dup_tf, Stream&) override {
    StagedCall call(arena_, "swiglu_backward");
    call.reads("dy", dy_tf).reads("gate", gate_tf).reads("up", up_tf);
    call.writes("dgate", dgate_tf).writes("dup", dup_tf);
    call.run([&] { kernels_->swiglu_backward(dy_tf, gate_tf, up_tf, dgate_tf, dup_tf, stream()); });
  }
  void cross_entropy(const CrossEntropyArgs& given, Stream&) override {
    CrossEntropyArgs args = given;
    StagedCall call(arena_, "cross_entropy");
    call.writes("logits", args.logits_cv).reads("labels", args.labels_c);
    call.writes("losses", args.losses_c).writes("dlogits", args.dlogits_cv);
    call.run([&] { kernels_->cross_entropy(args, stream()); });
  }

  void add(TensorView a, TensorView b, TensorView out, Stream&) override {
    StagedCall call(arena_, "add");
    call.reads("a", a).reads("b", b).writes("out", out);
    call.run([&] { kernels_->add(a, b, out, stream()); });
  }
  void cast(TensorView source, TensorView target, Stream&) override {
    StagedCall call(arena_, "cast");
    call.reads("source", source).writes("target", target);
    call.run([&] { kernels_->cast(source, target, stream()); });
  }
  void sum(TensorView values_t, TensorView total, Stream&) override {
    StagedCall call(arena_, "sum");
    call.reads("values", values_t).writes("total", total);
    call.run([&] { kernels_->sum(values_t, total, stream()); });
  }
  void cast_weight(TensorView master, TensorView weight, Stream&) override {
    StagedCall call(arena_, "cast_weight");
    call.reads("master", master).writes("weight", weight);
    call.run([&] { kernels_->cast_weight(master, weight, stream()); });
  }
  void accumulate(TensorView source, TensorView target, Accumulate accumulate, Stream&) override {
    StagedCall call(arena_, "accumulate");
    call.reads("source", source).writes("target", target);
    call.run([&] { kernels_->accumulate(source, target, accumulate, stream()); });
  }
  void square_sums(TensorView values, TensorView partials, Stream&) override {
    StagedCall call(arena_, "square_sums");
    call.reads("values", values).writes("partials", partials);
    call.run([&] { kernels_->square_sums(values, partials, stream()); });
  }
  void update(const UpdateArgs& given, Stream&) override {
    UpdateArgs args = given;
    StagedCall call(arena_, "update");
    call.reads("gradient", args.gradient).writes("master", args.master);
    call.writes("moment1", args.moment1).writes("weight", args.weight);
    call.writes("non_finite", args.non_finite);
    if (has_moment2(args.rule))
      call.writes("moment2", args.moment2);
    else
      call.reads("moment2", args.moment2);
    call.run([&] { kernels_->update(args, stream()); });
  }

 private:
  Stream& stream() { return arena_.stream(); }
  static void add_inputs(StagedCall& call, AttentionArgs& args) {
    call.reads("q", args.q_tqd).reads("k", args.k_tgd).reads("v", args.v_tgd);
    call.reads("document_start", args.document_start_t).reads("dout", args.dout_tqd);
  }

  StagingArena& arena_;
  const std::shared_ptr<Kernels> kernels_;
};

}  // namespace

std::unique_ptr<Kernels> make_staged_kernels(StagingArena& arena,
                                             std::shared_ptr<Kernels> kernels) {
  return std::make_unique<StagedKernels>(arena, std::move(kernels));
}

}  // namespace strata::testing
