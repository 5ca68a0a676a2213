#include "bench/paced/paced_machine.hpp"

#include <algorithm>
#include <string>

namespace strata::bench {

MachineProfile profile_of(const PacedRates& rates, int ranks) {
  constexpr double unlimited = 1e15;
  MachineProfile machine;
  machine.name = "host device, slowed";
  machine.ranks = ranks;
  machine.accelerator.name = "host";
  machine.accelerator.memory_bytes = std::uint64_t{1} << 34;
  machine.accelerator.memory_bytes_per_s = unlimited;
  machine.accelerator.peak_flops_per_s = rates.compute;
  machine.accelerator.bf16 = machine.accelerator.f32 = {{1, rates.compute}};
  machine.link = {rates.up, rates.down, 0};
  machine.host.memory_bytes = std::uint64_t{1} << 34;
  machine.host.cores = ranks;
  machine.host.memory_bytes_per_s = unlimited;
  for (const char* gradient : {"bf16", "f32"})
    for (const char* rest : {"/f32/f32", "/split/f32"})
      machine.host.updates[std::string(gradient) + rest] = {rates.update * ranks};
  machine.drives = {{std::uint64_t{1} << 36, rates.read, rates.write, 0, 0}};
  // Reads and writes do not disturb each other on the emulated drive.
  machine.drives[0].mixed_bytes_per_s = 2 * std::min(rates.read, rates.write);
  machine.comm = {rates.gather, rates.reduce, 0};
  return machine;
}

double stated_seconds(const Program& program, const Op& op, const PacedRates& rates) {
  if (op.kind == OpKind::run) return program.flops(program.segment(op.segment)) / rates.compute;
  if (op.kind != OpKind::update || op.lane != Lane::update) return 0;
  const Segment& segment = program.segment(op.segment);
  const Use& master = *program.use_of(segment, Role::master);
  return static_cast<double>(program.tile_count(master.shard, segment.tile)) / rates.update;
}

}  // namespace strata::bench
