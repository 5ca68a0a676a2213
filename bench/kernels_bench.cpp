// How fast the cpu kernels are, and how near to what memory gives. Matrix products and attention:
// linear_bench.cpp; the optimizer: adam_bench.cpp.

#include <cstdint>
#include <memory>

#include <benchmark/benchmark.h>

#include "bench/bench_tensor.hpp"
#include "strata/core/bytes.hpp"
#include "strata/kernels/kernels.hpp"

namespace strata {
namespace {

using bench::Tensor;

Stream& stream = bench::host_stream();

Kernels& kernels() {
  static const auto instance = make_cpu_kernels({});
  return *instance;
}

void set_bytes(benchmark::State& state, std::int64_t bytes) {
  state.counters["GB/s"] = benchmark::Counter(1e-9 * static_cast<double>(bytes),
                                              benchmark::Counter::kIsIterationInvariantRate);
}
void set_rate(benchmark::State& state, const char* name, std::int64_t count) {
  state.counters[name] =
      benchmark::Counter(static_cast<double>(count), benchmark::Counter::kIsIterationInvariantRate);
}

void square_sums(benchmark::State& state, DType dtype) {
  const std::int64_t n = state.range(0);
  const Tensor values(dtype, {n}), partials(DType::f64, {ceil_div(n, 4096)});
  for (auto _ : state) kernels().square_sums(values, partials, stream);
  set_bytes(state, n * dtype_bytes(dtype));
}
BENCHMARK_CAPTURE(square_sums, f32, DType::f32)->Arg(50'000'000)->UseRealTime();
BENCHMARK_CAPTURE(square_sums, bf16, DType::bf16)->Arg(50'000'000)->UseRealTime();

void cross_entropy(benchmark::State& state) {
  const std::int64_t c = 128, v = state.range(0);
  const Tensor logits_cv(DType::f32, {c, v}), labels_c(DType::i32, {c}), losses_c(DType::f32, {c});
  const Tensor dlogits_cv(DType::bf16, {c, v});
  for (auto _ : state)
    kernels().cross_entropy({logits_cv, labels_c, 1e-3, losses_c, dlogits_cv}, stream);
  set_rate(state, "tokens/s", c);
  set_rate(state, "logits/s", c * v);
}
BENCHMARK(cross_entropy)->Arg(49'152)->Arg(151'936)->UseRealTime()->Unit(benchmark::kMillisecond);

void rmsnorm_forward(benchmark::State& state, DType dtype) {
  const std::int64_t t = 1024, h = state.range(0);
  const Tensor x_th(dtype, {t, h}), w_h(dtype, {h}), y_th(dtype, {t, h}), rstd_t(DType::f32, {t});
  for (auto _ : state) kernels().rmsnorm_forward(x_th, w_h, 1e-5f, y_th, rstd_t, stream);
  set_bytes(state, 2 * t * h * dtype_bytes(dtype));
}
BENCHMARK_CAPTURE(rmsnorm_forward, f32, DType::f32)->Arg(576)->Arg(4096)->UseRealTime();
BENCHMARK_CAPTURE(rmsnorm_forward, bf16, DType::bf16)->Arg(576)->Arg(4096)->UseRealTime();

void rmsnorm_backward(benchmark::State& state) {
  const std::int64_t t = 1024, h = state.range(0);
  const Tensor x_th(DType::bf16, {t, h}), w_h(DType::bf16, {h}), dy_th(DType::bf16, {t, h}),
      rstd_t(DType::f32, {t});
  const Tensor dx_th(DType::bf16, {t, h}), dw_h(DType::bf16, {h});
  const auto scratch_bytes = static_cast<std::int64_t>(kernels().rmsnorm_scratch_bytes(t, h));
  const Tensor scratch(DType::u8, {scratch_bytes});
  const std::span bytes(scratch.as<std::byte>(), static_cast<std::size_t>(scratch_bytes));
  for (auto _ : state) {
    kernels().rmsnorm_backward(dy_th, x_th, w_h, rstd_t, dx_th, Accumulate::yes, dw_h, bytes,
                               stream);
  }
  set_bytes(state, 4 * t * h * 2);
}
BENCHMARK(rmsnorm_backward)->Arg(576)->Arg(4096)->UseRealTime();

void swiglu_forward(benchmark::State& state) {
  const std::int64_t t = 1024, f = state.range(0);
  const Tensor gate_tf(DType::bf16, {t, f}), up_tf(DType::bf16, {t, f}), y_tf(DType::bf16, {t, f});
  for (auto _ : state) kernels().swiglu_forward(gate_tf, up_tf, y_tf, stream);
  set_bytes(state, 3 * t * f * 2);
}
BENCHMARK(swiglu_forward)->Arg(1536)->Arg(14336)->UseRealTime();

void swiglu_backward(benchmark::State& state) {
  const std::int64_t t = 1024, f = state.range(0);
  const Tensor dy_tf(DType::bf16, {t, f}), gate_tf(DType::bf16, {t, f}), up_tf(DType::bf16, {t, f});
  const Tensor dgate_tf(DType::bf16, {t, f}), dup_tf(DType::bf16, {t, f});
  for (auto _ : state) kernels().swiglu_backward(dy_tf, gate_tf, up_tf, dgate_tf, dup_tf, stream);
  set_bytes(state, 5 * t * f * 2);
}
BENCHMARK(swiglu_backward)->Arg(1536)->Arg(14336)->UseRealTime();

}  // namespace
}  // namespace strata

BENCHMARK_MAIN();
