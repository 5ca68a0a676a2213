#include "profile_rounding.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace strata {
namespace {

double rounded(double value) { return std::stod(fmt::format("{:.3e}", value)); }

void round_rates(std::vector<MatmulRate>& rates) {
  for (MatmulRate& rate : rates) rate.flops_per_s = rounded(rate.flops_per_s);
}

void round_drive(DriveProfile& drive) {
  for (double* rate : {&drive.read_bytes_per_s, &drive.write_bytes_per_s,
                       &drive.new_file_bytes_per_s, &drive.mixed_bytes_per_s})
    *rate = rounded(*rate);
}

}  // namespace

std::uint64_t whole_megabytes(std::uint64_t bytes) { return bytes / 1'000'000 * 1'000'000; }

void round_profile(MachineProfile& machine) {
  AcceleratorProfile& accelerator = machine.accelerator;
  for (double* value : {&accelerator.peak_flops_per_s, &accelerator.memory_bytes_per_s,
                        &accelerator.attention_efficiency, &accelerator.seconds_per_call,
                        &machine.link.up_bytes_per_s, &machine.link.down_bytes_per_s,
                        &machine.host.memory_bytes_per_s, &machine.comm.gather_bytes_per_s,
                        &machine.comm.reduce_bytes_per_s, &machine.comm.seconds_per_call})
    *value = rounded(*value);
  round_rates(accelerator.bf16);
  round_rates(accelerator.f32);
  for (auto& [layout, update] : machine.host.updates)
    update.params_per_s = rounded(update.params_per_s);
  for (DriveProfile& drive : machine.drives) round_drive(drive);
  LinkProfile& link = machine.link;
  link.both_bytes_per_s =
      std::min(rounded(link.both_bytes_per_s), link.up_bytes_per_s + link.down_bytes_per_s);
}

}  // namespace strata
