#include "plan/rank_rates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "strata/core/error.hpp"

namespace strata {
namespace {

bool is_wide(DType dtype) { return dtype == DType::f32 || dtype == DType::f64; }

double interpolated(const std::vector<MatmulRate>& rates, double flops) {
  const auto above = std::ranges::upper_bound(rates, flops, {}, &MatmulRate::flops);
  if (above == rates.begin()) return above->flops_per_s;
  const MatmulRate& below = *(above - 1);
  if (above == rates.end()) return below.flops_per_s;
  const double way = std::log(flops / below.flops) / std::log(above->flops / below.flops);
  return below.flops_per_s + way * (above->flops_per_s - below.flops_per_s);
}

}  // namespace

RankRates::RankRates(const MachineProfile& machine, std::size_t num_drives)
    : machine_(machine), ranks_(std::max(1, machine.ranks)), num_drives_(num_drives) {
  for (std::size_t i = 0; i < std::min(num_drives, machine.drives.size()); ++i) {
    all_read_ += machine.drives[i].read_bytes_per_s / ranks_;
    all_write_ += machine.drives[i].write_bytes_per_s / ranks_;
  }
}

double RankRates::stated(double rate, std::string_view key) const {
  if (rate > 0) return rate;
  throw ConfigError(
      fmt::format("machine '{}' states no {}, and the plan needs it: add it to the "
                  "machine's file, or measure it with `strata bench all`",
                  machine_.name, key));
}

double RankRates::accelerator_memory() const {
  return stated(machine_.accelerator.memory_bytes_per_s, "accelerator.memory_bytes_per_s");
}

double RankRates::flops_per_s(KernelClass kind, DType dtype, double flops) const {
  const bool wide = is_wide(dtype);
  const auto& rates = wide ? machine_.accelerator.f32 : machine_.accelerator.bf16;
  const double rate = rates.empty() ? 0 : interpolated(rates, flops);
  const double product = stated(rate, wide ? "accelerator.f32 rate" : "accelerator.bf16 rate");
  if (kind != KernelClass::attention) return product;
  return product *
         stated(machine_.accelerator.attention_efficiency, "accelerator.attention_efficiency");
}

double RankRates::seconds(const SegmentWork& work) const {
  double seconds = 0;
  for (const KernelWork& kernel : work.kernels) seconds += seconds_of(kernel);
  return seconds;
}

double RankRates::seconds_of(const KernelWork& kernel) const {
  double once = 0;
  if (kernel.bytes > 0) once = kernel.bytes / accelerator_memory();
  if (kernel.flops > 0 && kernel.kind != KernelClass::elementwise)
    once = std::max(once, kernel.flops / flops_per_s(kernel.kind, kernel.dtype, kernel.flops));
  return kernel.calls * (seconds_per_call() + once);
}

double RankRates::up() const { return stated(machine_.link.up_bytes_per_s, "link.up_bytes_per_s"); }
double RankRates::down() const {
  return stated(machine_.link.down_bytes_per_s, "link.down_bytes_per_s");
}
double RankRates::host_memory() const {
  return stated(machine_.host.memory_bytes_per_s, "host.memory_bytes_per_s") / ranks_;
}
double RankRates::gather() const {
  return stated(machine_.comm.gather_bytes_per_s, "comm.gather_bytes_per_s");
}
double RankRates::reduce() const {
  return stated(machine_.comm.reduce_bytes_per_s, "comm.reduce_bytes_per_s");
}

double RankRates::update(const std::string& layout) const {
  const auto found = machine_.host.updates.find(layout);
  return found == machine_.host.updates.end() ? 0 : found->second.params_per_s / ranks_;
}

const DriveProfile& RankRates::drive(std::size_t index) const {
  if (index < machine_.drives.size()) return machine_.drives[index];
  throw ConfigError(
      fmt::format("the plan keeps tiles on {} drives, machine '{}' has {}: give it as many drives "
                  "as offload.nvme_paths names, or fewer paths",
                  std::max(num_drives_, index + 1), machine_.name, machine_.drives.size()));
}

double RankRates::drive_read(std::size_t index) const {
  return stated(drive(index).read_bytes_per_s, fmt::format("drives[{}].read_bytes_per_s", index)) /
         ranks_;
}
double RankRates::drive_write(std::size_t index) const {
  return stated(drive(index).write_bytes_per_s,
                fmt::format("drives[{}].write_bytes_per_s", index)) /
         ranks_;
}

double RankRates::drive_save(std::size_t index) const {
  return stated(drive(index).new_file_rate(), fmt::format("drives[{}].write_bytes_per_s", index)) /
         ranks_;
}

double mixed_capacity(const DriveProfile& drive) {
  if (drive.mixed_bytes_per_s <= 0) return 1;
  const double each = drive.mixed_bytes_per_s / 2;
  // The slower direction at its own rate beside the other: neither feels the other.
  if (each >= std::min(drive.read_bytes_per_s, drive.write_bytes_per_s)) return 2;
  return each / drive.read_bytes_per_s + each / drive.write_bytes_per_s;
}

}  // namespace strata
