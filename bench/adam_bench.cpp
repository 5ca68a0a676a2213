// How fast the optimizer pass is in each layout of its state, and how near to what memory gives.
//
// Each iteration of a pass is paired with one of a roofline pass that touches the same bytes in the
// same order and computes next to nothing (adam_roofline.cpp). `of_roofline` is the ratio of their
// best times, both taken in turn, so that a busy machine, or a virtual one whose cores move, slows
// both. `ping_ns` tells where two cores are: the time a cache line takes from one to the other.

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <thread>

#include <benchmark/benchmark.h>

#include "bench/adam_roofline.hpp"
#include "bench/bench_tensor.hpp"
#include "kernels/cpu/parallel.hpp"
#include "strata/optim/optimizer.hpp"

namespace strata::bench {
namespace {

struct Layout {
  std::string name;
  DType gradient;
  OptimizerConfig config;
};

Layout layout(const std::string& name, DType gradient, MasterFormat master, DType moments,
              UpdateRule rule = UpdateRule::adamw) {
  OptimizerConfig config;
  config.rule = rule;
  config.master = master;
  config.moments = moments;
  return {name, gradient, config};
}

HostStream host_stream;

// Everything one pass over n parameters needs.
class State {
 public:
  State(const Layout& of, std::int64_t n, int num_threads)
      : layout_(of),
        gradient_(of.gradient, {n}),
        master_(of.config.master == MasterFormat::split ? DType::u16 : DType::f32, {n}),
        moment1_(of.config.moments, {n}),
        moment2_(of.config.moments, {has_moment2(of.config.rule) ? n : 64}),
        weight_(DType::bf16, {n}),
        whole_{0, n},
        kernels_(make_cpu_kernels({.num_threads = num_threads})),
        threads_(num_threads) {}

  double pass() {
    return timed([&] { kernels_->update(args(), host_stream); });
  }
  double roofline() {
    const UpdateArgs touched = args();
    return timed([&] {
      threads_.for_chunks(
          touched.master.count(), 64 * 1024,
          [&](std::int64_t begin, std::int64_t end) { touch_state(touched, begin, end); });
    });
  }

 private:
  UpdateArgs args() {
    UpdateArgs result;
    result.rule = layout_.config.rule;
    result.gradient = gradient_;
    result.master = master_;
    result.moment1 = moment1_;
    if (has_moment2(result.rule)) result.moment2 = moment2_;
    result.weight = weight_;
    result.decays = {&whole_, 1};
    result.learning_rate = 1e-4;
    result.weight_decay = 0.1;
    result.step = ++step_;
    return result;
  }

  Layout layout_;
  Tensor gradient_, master_, moment1_, moment2_, weight_;
  DecayRange whole_;
  std::unique_ptr<Kernels> kernels_;
  cpu::Parallel threads_;
  std::int64_t step_ = 0;
};

double bytes_per_parameter(const Layout& of) {
  return pass_bytes_per_parameter(of.config, of.gradient, DType::bf16);
}

std::int64_t available_bytes() {
  std::int64_t kib = 0;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen("/proc/meminfo", "r"),
                                                       &std::fclose);
  char line[128];
  while (file != nullptr && std::fgets(line, sizeof line, file.get()) != nullptr)
    if (std::sscanf(line, "MemAvailable: %ld kB", &kib) == 1) break;
  return kib * 1024;
}

bool fits(benchmark::State& state, double bytes) {
  if (bytes + 1e9 < static_cast<double>(available_bytes())) return true;
  state.SkipWithError("not enough free memory");
  return false;
}

// Nanoseconds one way.
double ping_ns() {
  constexpr int rounds = 20000;
  std::atomic<int> ball{0};
  std::thread other([&] {
    for (int i = 0; i < rounds; ++i) {
      while (ball.load() != 2 * i + 1) {
      }
      ball = 2 * i + 2;
    }
  });
  const double taken = timed([&] {
    for (int i = 0; i < rounds; ++i) {
      ball = 2 * i + 1;
      while (ball.load() != 2 * i + 2) {
      }
    }
  });
  other.join();
  return taken / rounds / 2 * 1e9;
}

void adam(benchmark::State& state, const Layout& of) {
  const std::int64_t n = state.range(0);
  if (!fits(state, static_cast<double>(n) * 30)) return;
  State parameters(of, n, static_cast<int>(state.range(1)));
  double best_pass = std::numeric_limits<double>::infinity(), best_roofline = best_pass;
  for (auto _ : state) {
    best_roofline = std::min(best_roofline, parameters.roofline());
    const double pass = parameters.pass();
    best_pass = std::min(best_pass, pass);
    state.SetIterationTime(pass);
  }
  const double rate = static_cast<double>(n) / best_pass, bytes = bytes_per_parameter(of);
  state.counters["params/s"] = rate;
  state.counters["bytes/param"] = bytes;
  state.counters["GB/s"] = 1e-9 * bytes * rate;
  state.counters["of_roofline"] = best_roofline / best_pass;
  if (state.range(1) > 1) state.counters["ping_ns"] = ping_ns();
}

// Parameters/s of 8-bit moments and split master, over those of fp32 state, taken in turn.
void small_state_speedup(benchmark::State& state) {
  const std::int64_t n = state.range(0);
  if (!fits(state, static_cast<double>(n) * 45)) return;
  const int threads = static_cast<int>(state.range(1));
  State whole(layout("", DType::bf16, MasterFormat::f32, DType::f32), n, threads);
  State small(layout("", DType::bf16, MasterFormat::split, DType::q8), n, threads);
  double best_whole = std::numeric_limits<double>::infinity(), best_small = best_whole;
  for (auto _ : state) {
    best_whole = std::min(best_whole, whole.pass());
    const double pass = small.pass();
    best_small = std::min(best_small, pass);
    state.SetIterationTime(pass);
  }
  state.counters["speedup"] = best_whole / best_small;
  if (threads > 1) state.counters["ping_ns"] = ping_ns();
}

std::vector<Layout> layouts() {
  const MasterFormat whole = MasterFormat::f32, split = MasterFormat::split;
  return {layout("f32_gradient/f32_master/f32_moments", DType::f32, whole, DType::f32),
          layout("bf16_gradient/f32_master/f32_moments", DType::bf16, whole, DType::f32),
          layout("bf16_gradient/split_master/f32_moments", DType::bf16, split, DType::f32),
          layout("bf16_gradient/f32_master/bf16_moments", DType::bf16, whole, DType::bf16),
          layout("bf16_gradient/split_master/bf16_moments", DType::bf16, split, DType::bf16),
          layout("bf16_gradient/f32_master/q8_moments", DType::bf16, whole, DType::q8),
          layout("bf16_gradient/split_master/q8_moments", DType::bf16, split, DType::q8),
          layout("adam", DType::bf16, whole, DType::f32, UpdateRule::adam),
          layout("sgd", DType::bf16, whole, DType::f32, UpdateRule::sgd),
          layout("lion", DType::bf16, whole, DType::f32, UpdateRule::lion)};
}

void for_sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgsProduct({{1'000'000, 10'000'000, 100'000'000, 500'000'000}, {1, 2}})
      ->ArgNames({"n", "threads"})
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond);
}

void register_all() {
  for (const Layout& of : layouts())
    for_sizes(benchmark::RegisterBenchmark(("adam/" + of.name).c_str(), adam, of));
  for_sizes(benchmark::RegisterBenchmark("small_state_speedup", small_state_speedup));
}

}  // namespace
}  // namespace strata::bench

int main(int argc, char** argv) {
  strata::bench::register_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
