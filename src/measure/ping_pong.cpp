#include "ping_pong.hpp"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "strata/core/clock.hpp"
#include "strata/measure/samples.hpp"
#include "strata/topology/binding.hpp"
#include "strata/topology/topology.hpp"

namespace strata {
namespace {

constexpr int rounds = 15, flights_of_round = 200;

// Both sides touch nothing else on this line.
struct alignas(128) PingBall {
  std::atomic<int> flights{0};
};

void bind_to_core(int core) {
  const std::array cores = {core};
  bind_current_thread(cores);
}

// Odd flights go out, even ones come back.
void await(const PingBall& ball, int flight) {
  while (ball.flights.load(std::memory_order_acquire) != flight) {
  }
}

void answer(PingBall& ball, int core) {
  bind_to_core(core);
  for (int flight = 1; flight < 2 * rounds * flights_of_round; flight += 2) {
    await(ball, flight);
    ball.flights.store(flight + 1, std::memory_order_release);
  }
}

double round_ns(PingBall& ball, int& flight) {
  const std::int64_t begin = now_ns();
  for (int i = 0; i < flights_of_round; ++i, flight += 2) {
    ball.flights.store(flight + 1, std::memory_order_release);
    await(ball, flight + 2);
  }
  return static_cast<double>(now_ns() - begin) / (2 * flights_of_round);
}

}  // namespace

std::optional<PingCores> ping_cores() {
  std::vector<int> cores;
  for (const NumaNode& node : read_topology().nodes)
    cores.insert(cores.end(), node.cores.begin(), node.cores.end());
  if (cores.size() < 2) return std::nullopt;
  return PingCores{cores.front(), cores.back()};
}

std::string format_ping_cores(const std::optional<PingCores>& cores) {
  return cores ? fmt::format("{} and {}", cores->first, cores->second) : "";
}

double ping_pong_ns(const PingCores& cores) {
  PingBall ball;
  Samples ns;
  // Two threads of its own: the caller's binding stays what it is.
  std::thread second([&] { answer(ball, cores.second); });
  std::thread first([&] {
    bind_to_core(cores.first);
    for (int round = 0, flight = 0; round < rounds; ++round)
      ns.values.push_back(round_ns(ball, flight));
  });
  first.join();
  second.join();
  return ns.median();
}

}  // namespace strata
