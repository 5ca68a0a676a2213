// How fast the cpu kernels are, and how near to what memory gives. Matrix products and attention:
// linear_bench.cpp.
//
// The AdamW pass is bound by memory, so each of its iterations is paired with one of a "roofline"
// pass that walks the same arrays in the same way and computes next to nothing; `of_roofline` is
// the ratio of their best times, both taken in turn so that a busy machine slows both.

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>

#include <benchmark/benchmark.h>

#include "kernels/cpu/parallel.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/clock.hpp"
#include "strata/device/device.hpp"
#include "strata/kernels/kernels.hpp"

namespace strata {
namespace {

class HostStream final : public Stream {
 public:
  void record(Event&) override {}
  void wait(Event&) override {}
  void synchronize() override {}
};

// A tensor on 2 MiB pages where the system grants them, as the engine's own memory is.
class Tensor {
 public:
  Tensor(DType dtype, Shape shape, double value = 0) {
    view_ = {nullptr, dtype, shape};
    const std::uint64_t bytes = align_up(static_cast<std::uint64_t>(view_.bytes()), 2 * MiB);
    data_.reset(std::aligned_alloc(2 * MiB, bytes));
    madvise(data_.get(), bytes, MADV_HUGEPAGE);
    view_.data = data_.get();
    for (std::int64_t i = 0; i < view_.count(); ++i)
      set(i, value + 1e-3 * static_cast<double>(i % 1009));
  }
  operator TensorView() const { return view_; }
  template <typename T>
  T* as() const {
    return view_.as<T>();
  }

 private:
  struct Free {
    void operator()(void* data) const { std::free(data); }
  };
  void set(std::int64_t i, double value) {
    switch (view_.dtype) {
      case DType::f64:
        view_.as<double>()[i] = value;
        break;
      case DType::f32:
        view_.as<float>()[i] = static_cast<float>(value);
        break;
      case DType::bf16:
        view_.as<bfloat16>()[i] = to_bfloat16(static_cast<float>(value));
        break;
      case DType::i32:
        view_.as<std::int32_t>()[i] = static_cast<std::int32_t>(value);
        break;
      default:
        view_.as<std::uint8_t>()[i] = 0;
        break;
    }
  }
  std::unique_ptr<void, Free> data_;
  TensorView view_;
};

HostStream stream;

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

template <typename F>
double timed(F f) {
  const std::int64_t begin = now_ns();
  f();
  return seconds(now_ns() - begin);
}

// The state of n parameters, and the pass over it that does no arithmetic to speak of.
struct AdamWState {
  std::int64_t n;
  Tensor gradient, master, moment1, moment2, weight;

  AdamWState(std::int64_t count, DType gradient_dtype)
      : n(count),
        gradient(gradient_dtype, {n}),
        master(DType::f32, {n}),
        moment1(DType::f32, {n}),
        moment2(DType::f32, {n}),
        weight(DType::bf16, {n}) {}

  AdamWArgs args() const {
    AdamWArgs result{gradient, master, moment1, moment2, weight};
    result.learning_rate = 1e-4f;
    result.weight_decay = 0.1f;
    return result;
  }
  std::int64_t bytes() const {
    return n * (dtype_bytes(static_cast<TensorView>(gradient).dtype) + 3 * (4 + 4) + 2);
  }
  template <typename G>
  void touch(std::int64_t begin, std::int64_t end) const {
    const G* g = gradient.as<const G>();
    auto *p = master.as<std::uint32_t>(), *m = moment1.as<std::uint32_t>(),
         *v = moment2.as<std::uint32_t>();
    auto* w = weight.as<std::uint16_t>();
    for (std::int64_t i = begin; i < end; ++i) {
      p[i] ^= g[i];
      m[i] ^= 1u;
      v[i] ^= 1u;
      w[i] = static_cast<std::uint16_t>(p[i] >> 16);
    }
  }
  void roofline() const {
    const bool wide = static_cast<TensorView>(gradient).dtype == DType::f32;
    static cpu::Parallel threads(0);
    threads.for_chunks(n, 64 * 1024, [&](std::int64_t begin, std::int64_t end) {
      wide ? touch<std::uint32_t>(begin, end) : touch<std::uint16_t>(begin, end);
    });
  }
};

void adamw(benchmark::State& state, DType gradient_dtype) {
  const AdamWState parameters(state.range(0), gradient_dtype);
  double best_pass = std::numeric_limits<double>::infinity(), best_roofline = best_pass;
  for (auto _ : state) {
    best_roofline = std::min(best_roofline, timed([&] { parameters.roofline(); }));
    const double pass = timed([&] { kernels().adamw(parameters.args(), stream); });
    best_pass = std::min(best_pass, pass);
    state.SetIterationTime(pass);
  }
  set_bytes(state, parameters.bytes());
  set_rate(state, "params/s", parameters.n);
  state.counters["of_roofline"] = best_roofline / best_pass;
  state.counters["best_GB/s"] = 1e-9 * static_cast<double>(parameters.bytes()) / best_pass;
}
BENCHMARK_CAPTURE(adamw, f32_gradient, DType::f32)
    ->Arg(1'000'000)
    ->Arg(10'000'000)
    ->Arg(100'000'000)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(adamw, bf16_gradient, DType::bf16)
    ->Arg(10'000'000)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

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
