#pragma once
// Machines for tests: made up, each with another bottleneck, and slow enough that a toy's step
// takes a while on them.

#include "strata/core/philox.hpp"
#include "strata/plan/machine.hpp"
#include "strata/program/program.hpp"
#include "support/toy_program.hpp"

namespace strata::testing {

// Rates drawn from two decades around 100 MB/s.
inline MachineProfile slow_machine(std::uint64_t seed, int drives = 2) {
  PhiloxStream random(seed, 99);
  const double rates[] = {20e6, 60e6, 200e6, 600e6, 2e9};
  const auto rate = [&] { return rates[random.next_below(5)]; };
  MachineProfile machine;
  machine.name = "slow machine";
  machine.accelerator.memory_bytes_per_s = 20e9;
  machine.accelerator.bf16 = machine.accelerator.f32 = {{1e6, 50 * rate()}};
  machine.link = {rate(), rate(), 0};
  machine.host.memory_bytes_per_s = 2 * rate();
  machine.host.updates["f32/f32/f32"] = {rate() / 8};
  for (int i = 0; i < drives; ++i) machine.drives.push_back({1ull << 40, rate(), rate(), 0, 0});
  machine.comm = {1e9, 1e9, 0};
  return machine;
}

// A toy whose layers compute so many flops forward, and twice as many backward.
inline Program worked_toy(const ToyShape& shape, double flops) {
  Program program = make_toy_program(shape);
  for (const double times : {1.0, 2.0}) {
    const KernelWork work{KernelClass::matmul, DType::f32, times * flops, 0, 1};
    program.works.push_back({{work}});
  }
  for (Segment& segment : program.segments) {
    if (segment.kind == SegmentKind::forward) segment.work = 0;
    if (segment.kind == SegmentKind::backward || segment.kind == SegmentKind::loss)
      segment.work = 1;
  }
  return program;
}

}  // namespace strata::testing
