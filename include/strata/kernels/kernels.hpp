#pragma once
// The math of a training step as one table of ops, implemented by `ref` (plain and readable, sums
// in double), `cpu` (oneDNN matrix products, Highway SIMD, a pool of threads) and `cuda`. Kernels
// own nothing and decide nothing: every view and every byte of scratch is the caller's.
//
// Numbers. Storage is f32 or bf16 (a tensor op takes all its tensors in one of them unless said
// otherwise); arithmetic and sums are at least fp32. Results never depend on thread count or
// scheduling. `square_sums`, `accumulate`, `cast_weight` and `update` give the same bits in every
// implementation and on every SIMD target; the rest within rounding.
//
// Thread contract: an implementation may be called from several threads; each call is complete when
// the stream says so (host implementations: on return). Shapes are checked with ensure(): a wrong
// one is our fault, not the user's.
//
// Shape legend: t tokens of a micro-batch, k/n inputs and outputs of a linear layer, h hidden size,
// q query heads, g key/value heads, d head_dim, f feed-forward size, v vocabulary, c tokens of a
// chunk.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "strata/core/tensor_view.hpp"
#include "strata/kernels/update.hpp"

namespace strata {

class Stream;
struct KernelWork;  // strata/program/program.hpp

enum class Accumulate : std::uint8_t { no, yes };  // yes: added to what the output holds
enum class Rotation : std::uint8_t { forward, inverse };

struct AttentionArgs {
  TensorView q_tqd, k_tgd, v_tgd;  // after RoPE
  TensorView document_start_t;     // i32: index of the first token of each token's document; causal
                                   // within the document
  float scale = 1;                 // of scores: 1/sqrt(head_dim), times what yarn sharpens by
  TensorView out_tqd;              // forward: written; backward: read
  TensorView
      lse_qt;  // f32, log-sum-exp of each row's scaled scores; forward writes, backward reads
  // Backward only.
  TensorView dout_tqd, dq_tqd, dk_tgd, dv_tgd;
  std::span<std::byte> scratch;  // at least attention_scratch_bytes()
};

struct CrossEntropyArgs {
  TensorView logits_cv;   // f32, overwritten freely
  TensorView labels_c;    // i32; negative: the token is not trained and adds nothing
  double scale = 1;       // multiplies losses and gradients: 1 / trained tokens of the step
  TensorView losses_c;    // f32, written: scaled loss of each token, 0 where not trained
  TensorView dlogits_cv;  // same dtype as activations; empty: loss only. May not alias logits
                          // unless both are f32.
};

class Kernels {
 public:
  virtual ~Kernels() = default;
  virtual std::string_view name() const = 0;

  // out_th = table_vh[token]. Tokens are i32 and already checked to lie in [0, v).
  virtual void embedding_forward(TensorView tokens_t, TensorView table_vh, TensorView out_th,
                                 Stream&) = 0;
  // dtable_vh is written whole: zero rows for absent tokens, sums in fp32 in token order for
  // repeated ones.
  virtual void embedding_backward(TensorView tokens_t, TensorView dout_th, TensorView dtable_vh,
                                  std::span<std::byte> scratch, Stream&) = 0;
  virtual std::uint64_t embedding_scratch_bytes(std::int64_t t, std::int64_t v,
                                                std::int64_t h) const = 0;

  // y = x / sqrt(mean(x^2) + epsilon) * w per row; rstd_t (f32) keeps 1/sqrt(...) for backward.
  virtual void rmsnorm_forward(TensorView x_th, TensorView w_h, float epsilon, TensorView y_th,
                               TensorView rstd_t, Stream&) = 0;
  // dx_th (written, or added to) and dw_h (written). dw sums over tokens in a fixed order.
  virtual void rmsnorm_backward(TensorView dy_th, TensorView x_th, TensorView w_h,
                                TensorView rstd_t, TensorView dx_th, Accumulate accumulate_dx,
                                TensorView dw_h, std::span<std::byte> scratch, Stream&) = 0;
  virtual std::uint64_t rmsnorm_scratch_bytes(std::int64_t t, std::int64_t h) const = 0;

  // y_tn (+)= x_tk w_nk^T + bias_n. bias may be empty. y may be f32 while x and w are bf16
  // (logits).
  virtual void linear_forward(TensorView x_tk, TensorView w_nk, TensorView bias_n, TensorView y_tn,
                              Accumulate, Stream&) = 0;
  // dx_tk (+)= dy_tn w_nk. dx may be f32 while the others are bf16.
  virtual void linear_backward_input(TensorView dy_tn, TensorView w_nk, TensorView dx_tk,
                                     Accumulate, Stream&) = 0;
  // dw_nk (+)= dy_tn^T x_tk. dw may be f32 while the others are bf16.
  virtual void linear_backward_weight(TensorView dy_tn, TensorView x_tk, TensorView dw_nk,
                                      Accumulate, Stream&) = 0;
  // db_n = column sums of dy_tn.
  virtual void bias_backward(TensorView dy_tn, TensorView db_n, Stream&) = 0;

  // Rotate-half RoPE in place on x_thd ([t, heads, d]): position p(t) = t - document_start[t]; pair
  // (j, j + d/2) turns by p * inverse_frequencies[j] (angles, sines and cosines in fp32). Inverse:
  // the transposed rotation, for gradients.
  virtual void rope(TensorView x_thd, TensorView document_start_t,
                    std::span<const float> inverse_frequencies, Rotation rotation, Stream&) = 0;

  virtual void attention_forward(const AttentionArgs&, Stream&) = 0;
  virtual void attention_backward(const AttentionArgs&, Stream&) = 0;
  virtual std::uint64_t attention_scratch_bytes(std::int64_t t, std::int64_t q, std::int64_t g,
                                                std::int64_t d) const = 0;

  // y = silu(gate) * up.
  virtual void swiglu_forward(TensorView gate_tf, TensorView up_tf, TensorView y_tf, Stream&) = 0;
  // dgate, dup may alias gate, up.
  virtual void swiglu_backward(TensorView dy_tf, TensorView gate_tf, TensorView up_tf,
                               TensorView dgate_tf, TensorView dup_tf, Stream&) = 0;

  virtual void cross_entropy(const CrossEntropyArgs&, Stream&) = 0;

  // out = a + b; out may alias a.
  virtual void add(TensorView a, TensorView b, TensorView out, Stream&) = 0;
  // target = source, converting between f32 and bf16 (nearest even).
  virtual void cast(TensorView source, TensorView target, Stream&) = 0;
  // *total (f64, one element) = sum of values_t (f32) in index order, in double.
  virtual void sum(TensorView values_t, TensorView total, Stream&) = 0;

  // --- Exact family: same bits everywhere.
  // weight = weight_to_bfloat16(master) or a copy when weight is f32.
  virtual void cast_weight(TensorView master, TensorView weight, Stream&) = 0;
  // target (f32) = or += source (f32 or bf16).
  virtual void accumulate(TensorView source, TensorView target, Accumulate, Stream&) = 0;
  // partials[i] (f64) = sum of squares of elements [i*4096, (i+1)*4096) of `values` (f32 or bf16):
  // 64 lanes in double, element j in lane j mod 64, lanes then summed in order. Not finite exactly
  // when a value is not.
  virtual void square_sums(TensorView values, TensorView partials, Stream&) = 0;
  // One optimizer pass: see update.hpp.
  virtual void update(const UpdateArgs&, Stream&) = 0;
};

std::unique_ptr<Kernels> make_ref_kernels();

// How many threads an instance works on, the caller's included, and where: the caller says, who
// knows the machine. Results never depend on it.
struct CpuKernelsOptions {
  int num_threads = 0;  // 0: all cores this process may use
  // Threads of each NUMA node, at least one each, the caller among the first's; `num_threads` is
  // then their sum and is not looked at. Empty: one node. A pass over a tile is divided over the
  // nodes in this proportion.
  std::vector<int> threads_of_node = {};
  // Called on each thread the instance makes, as it starts, with the position of its node; the
  // place to bind it. Done when make_cpu_kernels() returns. Must not throw.
  std::function<void(std::size_t node)> on_thread_start = {};
};
std::unique_ptr<Kernels> make_cpu_kernels(const CpuKernelsOptions& options);

// Kernels that compute nothing, touch no memory and append to `into` what each call costs: equal
// calls as one entry. A product has 2 m n k flops; causal attention half of that per product (2
// forward; 5 backward, its recomputed scores included); everything else is bound by memory and has
// none. Bytes are those of the operands, read plus written, scratch not counted. Attention counts
// pairs of tokens within rows of `row_tokens`; 0: all are one row. Scratch sizes are those of
// `sizes`, which like `into` must outlive them. One thread.
std::unique_ptr<Kernels> make_meta_kernels(const Kernels& sizes, std::vector<KernelWork>& into,
                                           std::int64_t row_tokens = 0);

}  // namespace strata
