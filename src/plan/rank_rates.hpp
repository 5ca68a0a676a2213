#pragma once
// A machine as one of its ranks has it: its own accelerator and link, and its share of what all
// ranks share. A rate that is asked for and not stated is a ConfigError that names its key.

#include <cstddef>
#include <string>
#include <string_view>

#include "strata/plan/machine.hpp"
#include "strata/program/program.hpp"

namespace strata {

class RankRates {
 public:
  // `num_drives`: those that the plan has; the machine may have more.
  RankRates(const MachineProfile& machine, std::size_t num_drives);

  double seconds_per_call() const { return machine_.accelerator.seconds_per_call; }
  double accelerator_memory() const;
  // Of matrix products of this size, or of attention: interpolated over log(flops).
  double flops_per_s(KernelClass kind, DType dtype, double flops) const;
  double seconds(const SegmentWork& work) const;  // of the accelerator

  double up() const;
  double down() const;
  double host_memory() const;
  double gather() const;
  double reduce() const;
  double seconds_per_collective() const { return machine_.comm.seconds_per_call; }
  // Parameters per second of the host's pass in this layout; 0: not known.
  double update(const std::string& layout) const;

  double drive_read(std::size_t drive) const;
  double drive_write(std::size_t drive) const;
  double all_drives_read() const { return all_read_; }
  double all_drives_write() const { return all_write_; }
  double drive_save(std::size_t drive) const;  // into new files

 private:
  double stated(double rate, std::string_view key) const;
  double seconds_of(const KernelWork& kernel) const;
  const DriveProfile& drive(std::size_t index) const;

  const MachineProfile machine_;  // its own: callers pass temporaries
  double ranks_;
  std::size_t num_drives_;
  double all_read_ = 0, all_write_ = 0;
};

// How much the two directions of a drive carry together, as a sum of fractions of their own rates:
// 1 where they take turns, 2 where neither feels the other.
double mixed_capacity(const DriveProfile& drive);

}  // namespace strata
