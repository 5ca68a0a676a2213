#pragma once
// Seconds that a step's movements and passes keep each resource of a rank busy, added up without
// asking when they happen.

#include <array>
#include <cstdint>

#include "rank_rates.hpp"
#include "strata/plan/simulate.hpp"

namespace strata {

// What seconds of one direction take of what both directions carry together.
struct BothWays {
  double up = 0, down = 0;  // 0: they do not feel each other
  double drives = 1;        // 1: reads and writes take turns
};
BothWays both_ways(const MachineProfile& machine);

// Counts bytes, and divides by rates when it is asked for seconds: a search adds up millions.
class ResourceLoad {
 public:
  explicit ResourceLoad(const RankRates& rates) : rates_(&rates) {}

  void up(double bytes) { count(Use::up, bytes); }
  void down(double bytes) { count(Use::down, bytes); }
  void nvme_read(double bytes) { count(Use::nvme_read, bytes); }
  void nvme_write(double bytes) { count(Use::nvme_write, bytes); }
  void host_pass(double bytes) { count(Use::host_pass, bytes); }  // by the update lane's cores
  // One that takes the cores so long, if memory does not hold them up for longer.
  void host_update(double bytes, double core_seconds) {
    count(Use::host_update, bytes);
    count(Use::host_update_seconds, core_seconds);
  }
  void device_pass(double bytes) { count(Use::device_pass, bytes); }
  void device_copy(double bytes) { count(Use::device_copy, bytes); }  // on the comm lane
  void gather(double bytes) { count(Use::gather, bytes); }            // received
  void reduce(double bytes) { count(Use::reduce, bytes); }            // sent
  void compute(double seconds) { count(Use::compute_seconds, seconds); }
  void add(const ResourceLoad& other, double times);
  void spare_drives(double share) {  // of what they read and write
    for (const Use use : {Use::nvme_read, Use::nvme_write}) count(use, -share * amount(use));
  }

  std::array<double, num_resources> seconds() const;
  // The busiest resource's seconds: no schedule is faster. Drives that read and write, and links
  // that go both ways, take what they take at both.
  double bound(const BothWays& both) const;
  double sum() const;

 private:
  enum class Use : std::uint8_t {
    up,
    down,
    nvme_read,
    nvme_write,
    host_pass,
    host_update,
    host_update_seconds,
    device_pass,
    device_copy,
    gather,
    reduce,
    compute_seconds,
  };
  static constexpr std::size_t num_uses = 12;

  void count(Use use, double amount) { amounts_[static_cast<std::size_t>(use)] += amount; }
  double amount(Use use) const { return amounts_[static_cast<std::size_t>(use)]; }
  // Asks for a rate only where something needs it: a machine need not state all.
  double at(Use use, double (RankRates::*rate)() const) const {
    return amount(use) > 0 ? amount(use) / (rates_->*rate)() : 0;
  }

  const RankRates* rates_;
  std::array<double, num_uses> amounts_{};  // bytes, or seconds
};

}  // namespace strata
