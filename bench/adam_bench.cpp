// How fast the optimizer pass is in each layout of its state, and how near to what memory gives.
// `strata bench adam` shows the same to users.
//
// Each iteration of a pass is paired with one of a roofline pass that touches the same bytes in the
// same order and computes next to nothing. `of_roofline` is the ratio of their best times, both
// taken in turn, so that a busy machine, or a virtual one whose cores move, slows both. `ping_ns`
// tells where two cores are: the time a cache line takes from one to the other.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include <benchmark/benchmark.h>

#include "bench/bench_tensor.hpp"
#include "src/measure/ping_pong.hpp"
#include "strata/measure/adam_bench.hpp"
#include "strata/topology/topology.hpp"

namespace strata::bench {
namespace {

constexpr double spare_bytes = 1e9, never = std::numeric_limits<double>::infinity();

bool fits(benchmark::State& state, std::uint64_t bytes) {
  const auto free_bytes = static_cast<double>(read_topology().available_memory_bytes);
  if (static_cast<double>(bytes) + spare_bytes < free_bytes) return true;
  state.SkipWithError("not enough free memory");
  return false;
}

void show_ping(benchmark::State& state) {
  if (const auto cores = ping_cores()) state.counters["ping_ns"] = ping_pong_ns(*cores);
}

// The best of what was timed so far.
template <typename F>
double at_best(double& best, F pass) {
  const double taken = timed(pass);
  best = std::min(best, taken);
  return taken;
}

void adam(benchmark::State& state, const AdamLayout& layout) {
  const std::int64_t n = state.range(0);
  if (!fits(state, adam_passes_bytes(layout, n))) return;
  AdamPasses passes(layout, n, static_cast<int>(state.range(1)));
  double best_pass = never, best_roofline = never;
  for (auto _ : state) {
    at_best(best_roofline, [&] { passes.touch_update(); });
    state.SetIterationTime(at_best(best_pass, [&] { passes.update(); }));
  }
  const double rate = static_cast<double>(n) / best_pass, bytes = update_pass_bytes(layout);
  state.counters["params/s"] = rate;
  state.counters["bytes/param"] = bytes;
  state.counters["GB/s"] = 1e-9 * bytes * rate;
  state.counters["of_roofline"] = best_roofline / best_pass;
  show_ping(state);
}

// Parameters/s of 8-bit moments and split master, over those of fp32 state, taken in turn.
void small_state_speedup(benchmark::State& state) {
  const std::int64_t n = state.range(0);
  const AdamLayout whole = parse_state_layout("bf16/f32/f32", UpdateRule::adamw);
  const AdamLayout small = parse_state_layout("bf16/split/q8", UpdateRule::adamw);
  if (!fits(state, adam_passes_bytes(whole, n) + adam_passes_bytes(small, n))) return;
  const int threads = static_cast<int>(state.range(1));
  AdamPasses whole_passes(whole, n, threads), small_passes(small, n, threads);
  double best_whole = never, best_small = never;
  for (auto _ : state) {
    at_best(best_whole, [&] { whole_passes.update(); });
    state.SetIterationTime(at_best(best_small, [&] { small_passes.update(); }));
  }
  state.counters["speedup"] = best_whole / best_small;
  show_ping(state);
}

void for_sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgsProduct({{1'000'000, 10'000'000, 100'000'000, 500'000'000}, {1, 2}})
      ->ArgNames({"n", "threads"})
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond);
}

void register_layout(const AdamLayout& layout) {
  const std::string name = update_pass_name(layout);
  for_sizes(benchmark::RegisterBenchmark(name.c_str(), adam, layout));
}

void register_all() {
  for (const AdamLayout& layout : all_state_layouts(UpdateRule::adamw)) register_layout(layout);
  for (const UpdateRule rule : {UpdateRule::adam, UpdateRule::sgd, UpdateRule::lion})
    register_layout(parse_state_layout("bf16/f32/f32", rule));
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
