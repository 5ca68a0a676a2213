// Matrix-shaped kernels of the `cpu` table, in GF/s where a product has a peak to compare with.
// Threads: STRATA_THREADS or all cores. Sizes are the layers of a 51.6M (h 512), a 135M (h 576) and
// a 1B (h 2048) Llama.

#include <benchmark/benchmark.h>

#include <array>
#include <cstdlib>
#include <vector>

#include "bench/bench_tensor.hpp"
#include "strata/device/device.hpp"
#include "strata/kernels/kernels.hpp"

namespace {

using namespace strata;

Kernels& kernels() {
  static const char* threads = std::getenv("STRATA_THREADS");
  static const auto table =
      make_cpu_kernels({.num_threads = threads == nullptr ? 0 : std::atoi(threads)});
  return *table;
}

using bench::host_stream;

// Values near 1/8 that differ: neither denormal nor all alike.
class Tensor {
 public:
  Tensor(DType dtype, Shape shape)
      : bytes_(static_cast<std::size_t>(shape.count() * dtype_bytes(dtype))) {
    view_ = {bytes_.data(), dtype, shape};
    for (std::int64_t i = 0; i < shape.count(); ++i)
      set(i, 0.125f + static_cast<float>(i % 61) / 1024);
  }
  operator TensorView() const { return view_; }

 private:
  void set(std::int64_t i, float value) {
    if (view_.dtype == DType::bf16) {
      view_.as<bfloat16>()[i] = to_bfloat16(value);
    } else {
      view_.as<float>()[i] = value;
    }
  }
  std::vector<std::byte> bytes_;
  TensorView view_;
};

// t, k, n: tokens, inputs, outputs.
void count_operations(benchmark::State& state) {
  double operations = 2.0e-9;
  for (int axis = 0; axis < 3; ++axis) operations *= static_cast<double>(state.range(axis));
  state.counters["GF/s"] =
      benchmark::Counter(operations, benchmark::Counter::kIsIterationInvariantRate);
}

void forward(benchmark::State& state, DType dtype, DType result) {
  const Tensor x(dtype, {state.range(0), state.range(1)});
  const Tensor w(dtype, {state.range(2), state.range(1)});
  const Tensor y(result, {state.range(0), state.range(2)});
  for (auto _ : state) kernels().linear_forward(x, w, {}, y, Accumulate::no, host_stream());
  count_operations(state);
}

void backward_input(benchmark::State& state, DType dtype, DType result) {
  const Tensor dy(dtype, {state.range(0), state.range(2)});
  const Tensor w(dtype, {state.range(2), state.range(1)});
  const Tensor dx(result, {state.range(0), state.range(1)});
  for (auto _ : state) kernels().linear_backward_input(dy, w, dx, Accumulate::no, host_stream());
  count_operations(state);
}

void backward_weight(benchmark::State& state, DType dtype, DType result) {
  const Tensor dy(dtype, {state.range(0), state.range(2)});
  const Tensor x(dtype, {state.range(0), state.range(1)});
  const Tensor dw(result, {state.range(2), state.range(1)});
  for (auto _ : state) kernels().linear_backward_weight(dy, x, dw, Accumulate::no, host_stream());
  count_operations(state);
}

void layer_sizes(benchmark::internal::Benchmark* bench) {
  for (std::array<std::int64_t, 3> tkn : {std::array<std::int64_t, 3>{256, 512, 512},
                                          {256, 512, 1376},
                                          {256, 1376, 512},
                                          {256, 512, 16384},
                                          {512, 576, 192},
                                          {512, 576, 576},
                                          {512, 576, 1536},
                                          {512, 1536, 576},
                                          {512, 576, 49152},
                                          {2048, 576, 1536},
                                          {512, 2048, 5632},
                                          {512, 5632, 2048}}) {
    bench->Args({tkn[0], tkn[1], tkn[2]});
  }
  bench->ArgNames({"t", "k", "n"})->UseRealTime()->Unit(benchmark::kMicrosecond);
}

BENCHMARK_CAPTURE(forward, bf16, DType::bf16, DType::bf16)->Apply(layer_sizes);
BENCHMARK_CAPTURE(forward, bf16_to_f32, DType::bf16, DType::f32)->Apply(layer_sizes);
BENCHMARK_CAPTURE(backward_input, bf16, DType::bf16, DType::bf16)->Apply(layer_sizes);
BENCHMARK_CAPTURE(backward_weight, bf16, DType::bf16, DType::f32)->Apply(layer_sizes);
BENCHMARK_CAPTURE(forward, f32, DType::f32, DType::f32)->Apply(layer_sizes);
BENCHMARK_CAPTURE(backward_input, f32, DType::f32, DType::f32)->Apply(layer_sizes);
BENCHMARK_CAPTURE(backward_weight, f32, DType::f32, DType::f32)->Apply(layer_sizes);

std::vector<std::byte> starts_of_one_document(std::int64_t tokens) {
  return std::vector<std::byte>(static_cast<std::size_t>(tokens) * sizeof(std::int32_t));
}

// t, q, g, d.
struct AttentionCall {
  AttentionCall(const benchmark::State& state, DType dtype)
      : t(state.range(0)),
        q(state.range(1)),
        g(state.range(2)),
        d(state.range(3)),
        starts(starts_of_one_document(t)) {
    for (int i = 0; i < 4; ++i) query_shaped.emplace_back(dtype, Shape{t, q, d});
    for (int i = 0; i < 4; ++i) key_shaped.emplace_back(dtype, Shape{t, g, d});
    scratch.resize(kernels().attention_scratch_bytes(t, q, g, d));
    args = {.q_tqd = query_shaped[0],
            .k_tgd = key_shaped[0],
            .v_tgd = key_shaped[1],
            .document_start_t = {starts.data(), DType::i32, {t}},
            .scale = 0.125f,
            .out_tqd = query_shaped[1],
            .lse_qt = lse,
            .dout_tqd = query_shaped[2],
            .dq_tqd = query_shaped[3],
            .dk_tgd = key_shaped[2],
            .dv_tgd = key_shaped[3],
            .scratch = scratch};
  }
  std::int64_t t, q, g, d;
  std::vector<std::byte> starts, scratch;
  std::vector<Tensor> query_shaped, key_shaped;
  Tensor lse{DType::f32, {q, t}};
  AttentionArgs args;
};

void attention_forward(benchmark::State& state, DType dtype) {
  const AttentionCall call(state, dtype);
  for (auto _ : state) kernels().attention_forward(call.args, host_stream());
}

void attention_backward(benchmark::State& state, DType dtype) {
  const AttentionCall call(state, dtype);
  kernels().attention_forward(call.args, host_stream());
  for (auto _ : state) kernels().attention_backward(call.args, host_stream());
}

void attention_sizes(benchmark::internal::Benchmark* bench) {
  bench->Args({256, 8, 8, 64})
      ->Args({512, 9, 3, 64})
      ->Args({1024, 9, 3, 64})
      ->Args({2048, 32, 8, 64});
  bench->ArgNames({"t", "q", "g", "d"})->UseRealTime()->Unit(benchmark::kMicrosecond);
}

BENCHMARK_CAPTURE(attention_forward, bf16, DType::bf16)->Apply(attention_sizes);
BENCHMARK_CAPTURE(attention_backward, bf16, DType::bf16)->Apply(attention_sizes);
BENCHMARK_CAPTURE(attention_forward, f32, DType::f32)->Apply(attention_sizes);
BENCHMARK_CAPTURE(attention_backward, f32, DType::f32)->Apply(attention_sizes);

void rope(benchmark::State& state) {
  const std::int64_t t = state.range(0), heads = state.range(1), d = state.range(2);
  const Tensor x(DType::bf16, {t, heads, d});
  const std::vector<std::byte> starts = starts_of_one_document(t);
  const std::vector<float> frequencies(static_cast<std::size_t>(d / 2), 0.5f);
  const TensorView starts_t{const_cast<std::byte*>(starts.data()), DType::i32, {t}};
  for (auto _ : state) kernels().rope(x, starts_t, frequencies, Rotation::forward, host_stream());
}
BENCHMARK(rope)
    ->Args({256, 8, 64})
    ->Args({1024, 9, 64})
    ->ArgNames({"t", "heads", "d"})
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
