#pragma once
// Kernels whose own allocations are not counted, so that those of the code that calls them are.

#include <memory>

#include "alloc/allocation_counter.hpp"
#include "strata/kernels/kernels.hpp"

namespace strata::testing {

// Forwards to `inner`, which must work on the calling thread alone.
class UncountedKernels final : public Kernels {
 public:
  explicit UncountedKernels(std::unique_ptr<Kernels> inner) : inner_(std::move(inner)) {}

  std::string_view name() const override { return inner_->name(); }
  std::uint64_t embedding_scratch_bytes(std::int64_t t, std::int64_t v,
                                        std::int64_t h) const override {
    return inner_->embedding_scratch_bytes(t, v, h);
  }
  std::uint64_t rmsnorm_scratch_bytes(std::int64_t t, std::int64_t h) const override {
    return inner_->rmsnorm_scratch_bytes(t, h);
  }
  std::uint64_t attention_scratch_bytes(std::int64_t t, std::int64_t q, std::int64_t g,
                                        std::int64_t d) const override {
    return inner_->attention_scratch_bytes(t, q, g, d);
  }

  void embedding_forward(TensorView tokens, TensorView table, TensorView out, Stream& s) override {
    call(&Kernels::embedding_forward, tokens, table, out, s);
  }
  void embedding_backward(TensorView tokens, TensorView dout, TensorView dtable,
                          std::span<std::byte> scratch, Stream& s) override {
    call(&Kernels::embedding_backward, tokens, dout, dtable, scratch, s);
  }
  void rmsnorm_forward(TensorView x, TensorView w, float epsilon, TensorView y, TensorView rstd,
                       Stream& s) override {
    call(&Kernels::rmsnorm_forward, x, w, epsilon, y, rstd, s);
  }
  void rmsnorm_backward(TensorView dy, TensorView x, TensorView w, TensorView rstd, TensorView dx,
                        Accumulate accumulate, TensorView dw, std::span<std::byte> scratch,
                        Stream& s) override {
    call(&Kernels::rmsnorm_backward, dy, x, w, rstd, dx, accumulate, dw, scratch, s);
  }
  void linear_forward(TensorView x, TensorView w, TensorView bias, TensorView y,
                      Accumulate accumulate, Stream& s) override {
    call(&Kernels::linear_forward, x, w, bias, y, accumulate, s);
  }
  void linear_backward_input(TensorView dy, TensorView w, TensorView dx, Accumulate accumulate,
                             Stream& s) override {
    call(&Kernels::linear_backward_input, dy, w, dx, accumulate, s);
  }
  void linear_backward_weight(TensorView dy, TensorView x, TensorView dw, Accumulate accumulate,
                              Stream& s) override {
    call(&Kernels::linear_backward_weight, dy, x, dw, accumulate, s);
  }
  void bias_backward(TensorView dy, TensorView db, Stream& s) override {
    call(&Kernels::bias_backward, dy, db, s);
  }
  void rope(TensorView x, TensorView starts, std::span<const float> frequencies, Rotation rotation,
            Stream& s) override {
    call(&Kernels::rope, x, starts, frequencies, rotation, s);
  }
  void attention_forward(const AttentionArgs& args, Stream& s) override {
    call(&Kernels::attention_forward, args, s);
  }
  void attention_backward(const AttentionArgs& args, Stream& s) override {
    call(&Kernels::attention_backward, args, s);
  }
  void swiglu_forward(TensorView gate, TensorView up, TensorView y, Stream& s) override {
    call(&Kernels::swiglu_forward, gate, up, y, s);
  }
  void swiglu_backward(TensorView dy, TensorView gate, TensorView up, TensorView dgate,
                       TensorView dup, Stream& s) override {
    call(&Kernels::swiglu_backward, dy, gate, up, dgate, dup, s);
  }
  void cross_entropy(const CrossEntropyArgs& args, Stream& s) override {
    call(&Kernels::cross_entropy, args, s);
  }
  void add(TensorView a, TensorView b, TensorView out, Stream& s) override {
    call(&Kernels::add, a, b, out, s);
  }
  void cast(TensorView source, TensorView target, Stream& s) override {
    call(&Kernels::cast, source, target, s);
  }
  void sum(TensorView values, TensorView total, Stream& s) override {
    call(&Kernels::sum, values, total, s);
  }
  // The exact family is counted: it is part of the optimizer's path.
  void cast_weight(TensorView master, TensorView weight, Stream& s) override {
    inner_->cast_weight(master, weight, s);
  }
  void accumulate(TensorView source, TensorView target, Accumulate how, Stream& s) override {
    inner_->accumulate(source, target, how, s);
  }
  void square_sums(TensorView values, TensorView partials, Stream& s) override {
    inner_->square_sums(values, partials, s);
  }
  void update(const UpdateArgs& args, Stream& s) override { inner_->update(args, s); }

 private:
  template <typename Method, typename... Args>
  void call(Method method, Args&&... args) {
    const Uncounted pause;
    ((*inner_).*method)(std::forward<Args>(args)...);
  }
  std::unique_ptr<Kernels> inner_;
};

}  // namespace strata::testing
