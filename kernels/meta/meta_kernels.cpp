// The back end that computes nothing and writes down what a computation would cost.

#include <algorithm>
#include <initializer_list>

#include "strata/kernels/kernels.hpp"
#include "strata/program/program.hpp"

namespace strata {
namespace {

double bytes_of(std::initializer_list<TensorView> tensors) {
  std::int64_t bytes = 0;
  for (const TensorView& tensor : tensors) bytes += tensor.empty() ? 0 : tensor.bytes();
  return static_cast<double>(bytes);
}

// A target that is added to is read first.
double bytes_into(const TensorView& target, Accumulate accumulate) {
  return bytes_of({target}) * (accumulate == Accumulate::yes ? 2 : 1);
}

double product_flops(std::int64_t m, std::int64_t n, std::int64_t k) {
  return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
}

// One product of every head over the causal half of the pairs of tokens within each row. Documents
// are not looked at: where they begin is known only as the step runs.
double causal_product_flops(const AttentionArgs& args, std::int64_t row_tokens) {
  const std::int64_t t = args.q_tqd.dim(0), qd = args.q_tqd.dim(1) * args.q_tqd.dim(2);
  return product_flops(t, row_tokens > 0 ? std::min(t, row_tokens) : t, qd) / 2;
}

class MetaKernels final : public Kernels {
 public:
  MetaKernels(const Kernels& sizes, std::vector<KernelWork>& into, std::int64_t row_tokens)
      : sizes_(sizes), into_(into), row_tokens_(row_tokens) {}

  std::string_view name() const override { return "meta"; }

  void embedding_forward(TensorView tokens_t, TensorView, TensorView out_th, Stream&) override {
    elementwise(out_th.dtype, bytes_of({tokens_t, out_th, out_th}));  // a row read per row written
  }
  void embedding_backward(TensorView tokens_t, TensorView dout_th, TensorView dtable_vh,
                          std::span<std::byte>, Stream&) override {
    elementwise(dout_th.dtype, bytes_of({tokens_t, dout_th, dtable_vh}));
  }
  std::uint64_t embedding_scratch_bytes(std::int64_t t, std::int64_t v,
                                        std::int64_t h) const override {
    return sizes_.embedding_scratch_bytes(t, v, h);
  }

  void rmsnorm_forward(TensorView x_th, TensorView w_h, float, TensorView y_th, TensorView rstd_t,
                       Stream&) override {
    elementwise(x_th.dtype, bytes_of({x_th, w_h, y_th, rstd_t}));
  }
  void rmsnorm_backward(TensorView dy_th, TensorView x_th, TensorView w_h, TensorView rstd_t,
                        TensorView dx_th, Accumulate accumulate_dx, TensorView dw_h,
                        std::span<std::byte>, Stream&) override {
    elementwise(x_th.dtype,
                bytes_of({dy_th, x_th, w_h, rstd_t, dw_h}) + bytes_into(dx_th, accumulate_dx));
  }
  std::uint64_t rmsnorm_scratch_bytes(std::int64_t t, std::int64_t h) const override {
    return sizes_.rmsnorm_scratch_bytes(t, h);
  }

  void linear_forward(TensorView x_tk, TensorView w_nk, TensorView bias_n, TensorView y_tn,
                      Accumulate accumulate, Stream&) override {
    matmul(x_tk.dtype, product_flops(y_tn.dim(0), y_tn.dim(1), x_tk.dim(1)),
           bytes_of({x_tk, w_nk, bias_n}) + bytes_into(y_tn, accumulate));
  }
  void linear_backward_input(TensorView dy_tn, TensorView w_nk, TensorView dx_tk,
                             Accumulate accumulate, Stream&) override {
    matmul(dy_tn.dtype, product_flops(dx_tk.dim(0), dx_tk.dim(1), dy_tn.dim(1)),
           bytes_of({dy_tn, w_nk}) + bytes_into(dx_tk, accumulate));
  }
  void linear_backward_weight(TensorView dy_tn, TensorView x_tk, TensorView dw_nk,
                              Accumulate accumulate, Stream&) override {
    matmul(dy_tn.dtype, product_flops(dw_nk.dim(0), dw_nk.dim(1), dy_tn.dim(0)),
           bytes_of({dy_tn, x_tk}) + bytes_into(dw_nk, accumulate));
  }
  void bias_backward(TensorView dy_tn, TensorView db_n, Stream&) override {
    elementwise(dy_tn.dtype, bytes_of({dy_tn, db_n}));
  }

  void rope(TensorView x_thd, TensorView document_start_t,
            std::span<const float> inverse_frequencies, Rotation, Stream&) override {
    elementwise(x_thd.dtype, bytes_into(x_thd, Accumulate::yes) + bytes_of({document_start_t}) +
                                 static_cast<double>(inverse_frequencies.size_bytes()));
  }

  void attention_forward(const AttentionArgs& a, Stream&) override {
    add_call({KernelClass::attention, a.q_tqd.dtype, 2 * causal_product_flops(a, row_tokens_),
              bytes_of({a.q_tqd, a.k_tgd, a.v_tgd, a.document_start_t, a.out_tqd, a.lse_qt}), 1});
  }
  // The scores again, then the gradients of probabilities, queries, keys and values.
  void attention_backward(const AttentionArgs& a, Stream&) override {
    add_call({KernelClass::attention, a.q_tqd.dtype, 5 * causal_product_flops(a, row_tokens_),
              bytes_of({a.q_tqd, a.k_tgd, a.v_tgd, a.document_start_t, a.out_tqd, a.lse_qt,
                        a.dout_tqd, a.dq_tqd, a.dk_tgd, a.dv_tgd}),
              1});
  }
  std::uint64_t attention_scratch_bytes(std::int64_t t, std::int64_t q, std::int64_t g,
                                        std::int64_t d) const override {
    return sizes_.attention_scratch_bytes(t, q, g, d);
  }

  void swiglu_forward(TensorView gate_tf, TensorView up_tf, TensorView y_tf, Stream&) override {
    elementwise(y_tf.dtype, bytes_of({gate_tf, up_tf, y_tf}));
  }
  void swiglu_backward(TensorView dy_tf, TensorView gate_tf, TensorView up_tf, TensorView dgate_tf,
                       TensorView dup_tf, Stream&) override {
    elementwise(dy_tf.dtype, bytes_of({dy_tf, gate_tf, up_tf, dgate_tf, dup_tf}));
  }
  void cross_entropy(const CrossEntropyArgs& args, Stream&) override {
    elementwise(args.logits_cv.dtype,
                bytes_of({args.logits_cv, args.labels_c, args.losses_c, args.dlogits_cv}));
  }

  void add(TensorView a, TensorView b, TensorView out, Stream&) override {
    elementwise(a.dtype, bytes_of({a, b, out}));
  }
  void cast(TensorView source, TensorView target, Stream&) override {
    elementwise(source.dtype, bytes_of({source, target}));
  }
  void sum(TensorView values_t, TensorView total, Stream&) override {
    elementwise(values_t.dtype, bytes_of({values_t, total}));
  }

  void cast_weight(TensorView master, TensorView weight, Stream&) override {
    elementwise(master.dtype, bytes_of({master, weight}));
  }
  void accumulate(TensorView source, TensorView target, Accumulate accumulate, Stream&) override {
    elementwise(source.dtype, bytes_of({source}) + bytes_into(target, accumulate));
  }
  void square_sums(TensorView values, TensorView partials, Stream&) override {
    elementwise(values.dtype, bytes_of({values, partials}));
  }
  void update(const UpdateArgs& args, Stream&) override {
    const bool splits = args.master.dtype == DType::u16;
    const TensorView moment2 = has_moment2(args.rule) ? args.moment2 : TensorView{};
    elementwise(args.gradient.dtype,
                bytes_of({args.gradient}) +
                    2 * bytes_of({args.master, args.moment1, moment2, args.non_finite}) +
                    bytes_into(args.weight, splits ? Accumulate::yes : Accumulate::no));
  }

 private:
  void matmul(DType dtype, double flops, double bytes) {
    add_call({KernelClass::matmul, dtype, flops, bytes, 1});
  }
  void elementwise(DType dtype, double bytes) {
    add_call({KernelClass::elementwise, dtype, 0, bytes, 1});
  }

  // Counts are whole numbers far below 2^53: equal calls compare equal.
  void add_call(const KernelWork& call) {
    const auto known = std::ranges::find_if(into_, [&](const KernelWork& work) {
      return work.kind == call.kind && work.dtype == call.dtype && work.flops == call.flops &&
             work.bytes == call.bytes;
    });
    if (known == into_.end()) {
      into_.push_back(call);
    } else {
      ++known->calls;
    }
  }

  const Kernels& sizes_;
  std::vector<KernelWork>& into_;
  const std::int64_t row_tokens_;
};

}  // namespace

std::unique_ptr<Kernels> make_meta_kernels(const Kernels& sizes, std::vector<KernelWork>& into,
                                           std::int64_t row_tokens) {
  return std::make_unique<MetaKernels>(sizes, into, row_tokens);
}

}  // namespace strata
