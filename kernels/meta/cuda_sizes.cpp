#include "kernels/cuda/cuda_kernels.hpp"
#include "kernels/cuda/scratch_sizes.hpp"
#include "strata/core/error.hpp"

namespace strata::cuda {
namespace {

class CudaSizes final : public Kernels {
 public:
  std::string_view name() const override { return "cuda, sizes alone"; }

  std::uint64_t embedding_scratch_bytes(std::int64_t, std::int64_t v, std::int64_t) const override {
    return embedding_scratch_size(v);
  }
  std::uint64_t rmsnorm_scratch_bytes(std::int64_t t, std::int64_t h) const override {
    return rmsnorm_scratch_size(t, h);
  }
  std::uint64_t attention_scratch_bytes(std::int64_t t, std::int64_t q, std::int64_t,
                                        std::int64_t) const override {
    return attention_scratch_size(t, q);
  }

  void embedding_forward(TensorView, TensorView, TensorView, Stream&) override { refuse(); }
  void embedding_backward(TensorView, TensorView, TensorView, std::span<std::byte>,
                          Stream&) override {
    refuse();
  }
  void rmsnorm_forward(TensorView, TensorView, float, TensorView, TensorView, Stream&) override {
    refuse();
  }
  void rmsnorm_backward(TensorView, TensorView, TensorView, TensorView, TensorView, Accumulate,
                        TensorView, std::span<std::byte>, Stream&) override {
    refuse();
  }
  void linear_forward(TensorView, TensorView, TensorView, TensorView, Accumulate,
                      Stream&) override {
    refuse();
  }
  void linear_backward_input(TensorView, TensorView, TensorView, Accumulate, Stream&) override {
    refuse();
  }
  void linear_backward_weight(TensorView, TensorView, TensorView, Accumulate, Stream&) override {
    refuse();
  }
  void bias_backward(TensorView, TensorView, Stream&) override { refuse(); }
  void rope(TensorView, TensorView, std::span<const float>, Rotation, Stream&) override {
    refuse();
  }
  void attention_forward(const AttentionArgs&, Stream&) override { refuse(); }
  void attention_backward(const AttentionArgs&, Stream&) override { refuse(); }
  void swiglu_forward(TensorView, TensorView, TensorView, Stream&) override { refuse(); }
  void swiglu_backward(TensorView, TensorView, TensorView, TensorView, TensorView,
                       Stream&) override {
    refuse();
  }
  void cross_entropy(const CrossEntropyArgs&, Stream&) override { refuse(); }
  void add(TensorView, TensorView, TensorView, Stream&) override { refuse(); }
  void cast(TensorView, TensorView, Stream&) override { refuse(); }
  void sum(TensorView, TensorView, Stream&) override { refuse(); }
  void cast_weight(TensorView, TensorView, Stream&) override { refuse(); }
  void accumulate(TensorView, TensorView, Accumulate, Stream&) override { refuse(); }
  void square_sums(TensorView, TensorView, Stream&) override { refuse(); }
  void update(const UpdateArgs&, Stream&) override { refuse(); }

 private:
  // Whoever computes has made other kernels.
  static void refuse() { ensure(false); }
};

}  // namespace

std::unique_ptr<Kernels> make_cuda_sizes() { return std::make_unique<CudaSizes>(); }

}  // namespace strata::cuda
