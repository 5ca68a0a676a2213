#include "fake_cuda/streamed_kernels.hpp"

#include <functional>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace strata::testing {
namespace {

using Views = std::initializer_list<TensorView>;

class StreamedKernels final : public Kernels {
 public:
  StreamedKernels(FakeCuda& fake, Kernels& host) : fake_(fake), host_(host) {}
  std::string_view name() const override { return "streamed"; }

  void embedding_forward(TensorView tokens, TensorView table, TensorView out,
                         Stream& stream) override {
    launch("embedding_forward", {tokens, table}, {out}, {}, stream,
           [=, this, &stream] { host_.embedding_forward(tokens, table, out, stream); });
  }
  void embedding_backward(TensorView tokens, TensorView dout, TensorView dtable,
                          std::span<std::byte> scratch, Stream& stream) override {
    launch("embedding_backward", {tokens, dout}, {dtable}, scratch, stream,
           [=, this, &stream] { host_.embedding_backward(tokens, dout, dtable, scratch, stream); });
  }
  std::uint64_t embedding_scratch_bytes(std::int64_t t, std::int64_t v,
                                        std::int64_t h) const override {
    return host_.embedding_scratch_bytes(t, v, h);
  }

  void rmsnorm_forward(TensorView x, TensorView w, float epsilon, TensorView y, TensorView rstd,
                       Stream& stream) override {
    launch("rmsnorm_forward", {x, w}, {y, rstd}, {}, stream,
           [=, this, &stream] { host_.rmsnorm_forward(x, w, epsilon, y, rstd, stream); });
  }
  void rmsnorm_backward(TensorView dy, TensorView x, TensorView w, TensorView rstd, TensorView dx,
                        Accumulate mode, TensorView dw, std::span<std::byte> scratch,
                        Stream& stream) override {
    launch("rmsnorm_backward", {dy, x, w, rstd}, {dx, dw}, scratch, stream, [=, this, &stream] {
      host_.rmsnorm_backward(dy, x, w, rstd, dx, mode, dw, scratch, stream);
    });
  }
  std::uint64_t rmsnorm_scratch_bytes(std::int64_t t, std::int64_t h) const override {
    return host_.rmsnorm_scratch_bytes(t, h);
  }

  void linear_forward(TensorView x, TensorView w, TensorView bias, TensorView y, Accumulate mode,
                      Stream& stream) override {
    launch("linear_forward", {x, w, bias}, {y}, {}, stream,
           [=, this, &stream] { host_.linear_forward(x, w, bias, y, mode, stream); });
  }
  void linear_backward_input(TensorView dy, TensorView w, TensorView dx, Accumulate mode,
                             Stream& stream) override {
    launch("linear_backward_input", {dy, w}, {dx}, {}, stream,
           [=, this, &stream] { host_.linear_backward_input(dy, w, dx, mode, stream); });
  }
  void linear_backward_weight(TensorView dy, TensorView x, TensorView dw, Accumulate mode,
                              Stream& stream) override {
    launch("linear_backward_weight", {dy, x}, {dw}, {}, stream,
           [=, this, &stream] { host_.linear_backward_weight(dy, x, dw, mode, stream); });
  }
  void bias_backward(TensorView dy, TensorView db, Stream& stream) override {
    launch("bias_backward", {dy}, {db}, {}, stream,
           [=, this, &stream] { host_.bias_backward(dy, db, stream); });
  }

  void rope(TensorView x, TensorView document_start, std::span<const float> frequencies,
            Rotation rotation, Stream& stream) override {
    launch("rope", {document_start}, {x}, {}, stream,
           [=, this, &stream, own = std::vector(frequencies.begin(), frequencies.end())] {
             host_.rope(x, document_start, own, rotation, stream);
           });
  }
  void attention_forward(const AttentionArgs& args, Stream& stream) override {
    launch("attention_forward", {args.q_tqd, args.k_tgd, args.v_tgd, args.document_start_t},
           {args.out_tqd, args.lse_qt}, args.scratch, stream,
           [=, this, &stream] { host_.attention_forward(args, stream); });
  }
  void attention_backward(const AttentionArgs& args, Stream& stream) override {
    launch("attention_backward",
           {args.q_tqd, args.k_tgd, args.v_tgd, args.document_start_t, args.out_tqd, args.lse_qt,
            args.dout_tqd},
           {args.dq_tqd, args.dk_tgd, args.dv_tgd}, args.scratch, stream,
           [=, this, &stream] { host_.attention_backward(args, stream); });
  }
  std::uint64_t attention_scratch_bytes(std::int64_t t, std::int64_t q, std::int64_t g,
                                        std::int64_t d) const override {
    return host_.attention_scratch_bytes(t, q, g, d);
  }

  void swiglu_forward(TensorView gate, TensorView up, TensorView y, Stream& stream) override {
    launch("swiglu_forward", {gate, up}, {y}, {}, stream,
           [=, this, &stream] { host_.swiglu_forward(gate, up, y, stream); });
  }
  void swiglu_backward(TensorView dy, TensorView gate, TensorView up, TensorView dgate,
                       TensorView dup, Stream& stream) override {
    launch("swiglu_backward", {dy, gate, up}, {dgate, dup}, {}, stream,
           [=, this, &stream] { host_.swiglu_backward(dy, gate, up, dgate, dup, stream); });
  }
  void cross_entropy(const CrossEntropyArgs& args, Stream& stream) override {
    launch("cross_entropy", {args.labels_c}, {args.logits_cv, args.losses_c, args.dlogits_cv}, {},
           stream, [=, this, &stream] { host_.cross_entropy(args, stream); });
  }

  void add(TensorView a, TensorView b, TensorView out, Stream& stream) override {
    launch("add", {a, b}, {out}, {}, stream, [=, this, &stream] { host_.add(a, b, out, stream); });
  }
  void cast(TensorView source, TensorView target, Stream& stream) override {
    launch("cast", {source}, {target}, {}, stream,
           [=, this, &stream] { host_.cast(source, target, stream); });
  }
  void sum(TensorView values, TensorView total, Stream& stream) override {
    launch("sum", {values}, {total}, {}, stream,
           [=, this, &stream] { host_.sum(values, total, stream); });
  }
  void cast_weight(TensorView master, TensorView weight, Stream& stream) override {
    launch("cast_weight", {master}, {weight}, {}, stream,
           [=, this, &stream] { host_.cast_weight(master, weight, stream); });
  }
  void accumulate(TensorView source, TensorView target, Accumulate mode, Stream& stream) override {
    launch("accumulate", {source}, {target}, {}, stream,
           [=, this, &stream] { host_.accumulate(source, target, mode, stream); });
  }
  void square_sums(TensorView values, TensorView partials, Stream& stream) override {
    launch("square_sums", {values}, {partials}, {}, stream,
           [=, this, &stream] { host_.square_sums(values, partials, stream); });
  }
  void update(const UpdateArgs& args, Stream& stream) override {
    launch("update", {args.gradient},
           {args.master, args.moment1, args.moment2, args.weight, args.non_finite}, {}, stream,
           [=, this, &stream, decays = std::vector(args.decays.begin(), args.decays.end())] {
             UpdateArgs own = args;
             own.decays = decays;
             host_.update(own, stream);
           });
  }

 private:
  void launch(const std::string& what, Views reads, Views writes, std::span<std::byte> scratch,
              const Stream& stream, std::function<void()> work) {
    std::vector<FakeAccess> accesses;
    for (const TensorView& view : reads)
      if (!view.empty()) accesses.push_back(access_of(view, Touch::reads));
    for (const TensorView& view : writes)
      if (!view.empty()) accesses.push_back(access_of(view, Touch::writes));
    if (!scratch.empty()) accesses.push_back({scratch.data(), scratch.size(), Touch::writes});
    fake_.launch(stream.native(), what, accesses, std::move(work));
  }

  FakeCuda& fake_;
  Kernels& host_;
};

}  // namespace

FakeAccess access_of(const TensorView& view, Touch touch) {
  return {view.as<const std::byte>(), static_cast<std::uint64_t>(view.bytes()), touch};
}

std::unique_ptr<Kernels> make_streamed_kernels(FakeCuda& fake, Kernels& host) {
  return std::make_unique<StreamedKernels>(fake, host);
}

}  // namespace strata::testing
