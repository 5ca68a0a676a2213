// Strata's side of bench/peers/offloaded_step.py: holds the state of COUNT parameters in LAYOUT
// and answers each line on standard input with one number:
//
//   update      seconds of an update that writes the bf16 weight as well
//   step        seconds of the gradient's norm and such an update, clipped to a norm of 1
//   ping        nanoseconds a cache line takes from one core to another; 0 with one core
//   weight      mean magnitude of the bf16 weights

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>

#include "src/measure/ping_pong.hpp"
#include "strata/core/clock.hpp"
#include "strata/core/error.hpp"
#include "strata/measure/adam_passes.hpp"

namespace strata {
namespace {

template <class F>
double timed_s(F pass) {
  const std::int64_t begin = now_ns();
  pass();
  return seconds(now_ns() - begin);
}

double mean_magnitude(std::span<const bfloat16> weights) {
  double sum = 0;
  for (const bfloat16 weight : weights) sum += std::abs(static_cast<double>(to_float(weight)));
  return sum / static_cast<double>(weights.size());
}

double answer(const std::string& command, AdamPasses& passes) {
  if (command == "update") return timed_s([&] { passes.update(); });
  if (command == "step")
    return timed_s([&] {
      passes.norm();
      passes.update();
    });
  if (command == "weight") return mean_magnitude(passes.weight());
  if (command != "ping") throw ConfigError("unknown command: " + command);
  const auto cores = ping_cores();
  return cores ? ping_pong_ns(*cores) : 0;
}

int serve(std::int64_t count, int threads, const std::string& layout) {
  AdamPasses passes(parse_state_layout(layout, UpdateRule::adamw), count, threads);
  fmt::print("ready\n");
  std::fflush(stdout);
  for (std::string command; std::getline(std::cin, command);) {
    fmt::print("{:.9g}\n", answer(command, passes));
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace strata

int main(int argc, char** argv) {
  if (argc != 4) {
    fmt::print(stderr, "usage: strata_step COUNT THREADS LAYOUT\n");
    return 2;
  }
  try {
    return strata::serve(std::atoll(argv[1]), std::atoi(argv[2]), argv[3]);
  } catch (const strata::Error& error) {
    fmt::print(stderr, "strata_step: {}\n", error.what());
    return 1;
  }
}
