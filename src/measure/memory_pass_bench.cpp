#include "memory_pass_bench.hpp"

#include <algorithm>
#include <cmath>

#include "strata/core/bytes.hpp"
#include "strata/program/program.hpp"

namespace strata {
namespace {

constexpr float epsilon = 1e-5f;
constexpr std::int64_t rope_head_dim = 128, token_stride = 7919;

TimedCall time_rmsnorm_forward(KernelTimer& timer, std::int64_t t, std::int64_t h) {
  const BenchTensor x = timer.tensor(DType::bf16, {t, h}), w = timer.tensor(DType::bf16, {h}),
                    y = timer.tensor(DType::bf16, {t, h}), rstd = timer.tensor(DType::f32, {t});
  return timer.time(
      [&](Kernels& on, Stream& stream) { on.rmsnorm_forward(x, w, epsilon, y, rstd, stream); });
}

TimedCall time_rmsnorm_backward(KernelTimer& timer, std::int64_t t, std::int64_t h) {
  const BenchTensor dy = timer.tensor(DType::bf16, {t, h}), x = timer.tensor(DType::bf16, {t, h}),
                    w = timer.tensor(DType::bf16, {h}), rstd = timer.tensor(DType::f32, {t}),
                    dx = timer.tensor(DType::bf16, {t, h}), dw = timer.tensor(DType::bf16, {h});
  const Slab scratch = timer.device().allocate(timer.kernels().rmsnorm_scratch_bytes(t, h));
  return timer.time([&](Kernels& on, Stream& stream) {
    on.rmsnorm_backward(dy, x, w, rstd, dx, Accumulate::no, dw, {scratch.data(), scratch.bytes()},
                        stream);
  });
}

TimedCall time_swiglu_forward(KernelTimer& timer, std::int64_t t, std::int64_t f) {
  const BenchTensor gate = timer.tensor(DType::bf16, {t, f}),
                    up = timer.tensor(DType::bf16, {t, f}), y = timer.tensor(DType::bf16, {t, f});
  return timer.time([&](Kernels& on, Stream& stream) { on.swiglu_forward(gate, up, y, stream); });
}

TimedCall time_swiglu_backward(KernelTimer& timer, std::int64_t t, std::int64_t f) {
  const BenchTensor dy = timer.tensor(DType::bf16, {t, f}),
                    gate = timer.tensor(DType::bf16, {t, f}),
                    up = timer.tensor(DType::bf16, {t, f}),
                    dgate = timer.tensor(DType::bf16, {t, f}),
                    dup = timer.tensor(DType::bf16, {t, f});
  return timer.time(
      [&](Kernels& on, Stream& stream) { on.swiglu_backward(dy, gate, up, dgate, dup, stream); });
}

TimedCall time_rope(KernelTimer& timer, std::int64_t t, std::int64_t heads) {
  const BenchTensor x = timer.tensor(DType::bf16, {t, heads, rope_head_dim}),
                    starts = timer.tensor(DType::i32, {t}, BenchValues::zeros);
  std::vector<float> frequencies;
  for (std::int64_t i = 0; i < rope_head_dim / 2; ++i)
    frequencies.push_back(std::pow(500000.0f, -2.0f * static_cast<float>(i) / rope_head_dim));
  return timer.time([&](Kernels& on, Stream& stream) {
    on.rope(x, starts, frequencies, Rotation::forward, stream);
  });
}

TimedCall time_add(KernelTimer& timer, std::int64_t t, std::int64_t h) {
  const BenchTensor a = timer.tensor(DType::bf16, {t, h}), b = timer.tensor(DType::bf16, {t, h}),
                    sum = timer.tensor(DType::bf16, {t, h});
  return timer.time([&](Kernels& on, Stream& stream) { on.add(a, b, sum, stream); });
}

// Every label is 0, as the place of a token's label costs nothing.
TimedCall time_cross_entropy(KernelTimer& timer, std::int64_t c, std::int64_t v) {
  const BenchTensor logits = timer.tensor(DType::f32, {c, v}),
                    labels = timer.tensor(DType::i32, {c}, BenchValues::zeros),
                    losses = timer.tensor(DType::f32, {c}),
                    dlogits = timer.tensor(DType::bf16, {c, v});
  const CrossEntropyArgs args{.logits_cv = logits,
                              .labels_c = labels,
                              .scale = 1 / static_cast<double>(c),
                              .losses_c = losses,
                              .dlogits_cv = dlogits};
  return timer.time([&](Kernels& on, Stream& stream) { on.cross_entropy(args, stream); });
}

// As good as all different, all over the vocabulary.
BenchTensor token_tensor(const KernelTimer& timer, std::int64_t t, std::int64_t v) {
  std::vector<std::int32_t> tokens;
  for (std::int64_t i = 0; i < t; ++i)
    tokens.push_back(static_cast<std::int32_t>(i * token_stride % v));
  BenchTensor tensor = timer.tensor(DType::i32, {t}, BenchValues::zeros);
  timer.device().copy(
      TensorView(tensor).as<std::byte>(), reinterpret_cast<const std::byte*>(tokens.data()),
      tokens.size() * sizeof(std::int32_t), CopyKind::host_to_device, timer.stream());
  timer.stream().synchronize();
  return tensor;
}

TimedCall time_embedding_forward(KernelTimer& timer, std::int64_t t, std::int64_t v,
                                 std::int64_t h) {
  const BenchTensor tokens = token_tensor(timer, t, v), table = timer.tensor(DType::bf16, {v, h}),
                    out = timer.tensor(DType::bf16, {t, h});
  return timer.time(
      [&](Kernels& on, Stream& stream) { on.embedding_forward(tokens, table, out, stream); });
}

TimedCall time_embedding_backward(KernelTimer& timer, std::int64_t t, std::int64_t v,
                                  std::int64_t h) {
  const BenchTensor tokens = token_tensor(timer, t, v), dout = timer.tensor(DType::bf16, {t, h}),
                    dtable = timer.tensor(DType::bf16, {v, h});
  const Slab scratch = timer.device().allocate(timer.kernels().embedding_scratch_bytes(t, v, h));
  return timer.time([&](Kernels& on, Stream& stream) {
    on.embedding_backward(tokens, dout, dtable, {scratch.data(), scratch.bytes()}, stream);
  });
}

TimedCall time_square_sums(KernelTimer& timer, DType dtype, std::int64_t count) {
  const BenchTensor values = timer.tensor(dtype, {count}),
                    partials = timer.tensor(DType::f64, {ceil_div(count, norm_chunk_elements)},
                                            BenchValues::zeros);
  return timer.time([&](Kernels& on, Stream& stream) { on.square_sums(values, partials, stream); });
}

TimedCall time_accumulate(KernelTimer& timer, std::int64_t count) {
  const BenchTensor source = timer.tensor(DType::bf16, {count}),
                    target = timer.tensor(DType::f32, {count});
  return timer.time(
      [&](Kernels& on, Stream& stream) { on.accumulate(source, target, Accumulate::yes, stream); });
}

}  // namespace

std::vector<MemoryPass> memory_passes(const GpuBenchSizes& sizes) {
  const std::int64_t t = sizes.pass_rows, h = sizes.hidden, f = sizes.ffn, n = sizes.parameters;
  const std::int64_t c = sizes.logit_rows, v = sizes.vocabulary;
  const std::int64_t heads = std::max<std::int64_t>(1, h / rope_head_dim);
  const auto of = [](auto time, auto... arguments) {
    return [=](KernelTimer& timer) { return time(timer, arguments...); };
  };
  return {{"rmsnorm forward", t, h, of(time_rmsnorm_forward, t, h)},
          {"rmsnorm backward", t, h, of(time_rmsnorm_backward, t, h)},
          {"swiglu forward", t, f, of(time_swiglu_forward, t, f)},
          {"swiglu backward", t, f, of(time_swiglu_backward, t, f)},
          {"rope", t, heads * rope_head_dim, of(time_rope, t, heads)},
          {"add", t, h, of(time_add, t, h)},
          {"cross-entropy", c, v, of(time_cross_entropy, c, v)},
          {"embedding forward", c, h, of(time_embedding_forward, c, v, h)},
          {"embedding backward", v, h, of(time_embedding_backward, c, v, h)},
          {"norm of bf16 gradient", 1, n, of(time_square_sums, DType::bf16, n)},
          {"norm of f32 gradient", 1, n, of(time_square_sums, DType::f32, n)},
          {"sum of gradients", 1, n, of(time_accumulate, n)}};
}

}  // namespace strata
