#pragma once
// Seconds that a step's movements and passes keep each resource of a rank busy, added up without
// asking when they happen.

#include <array>

#include "rank_rates.hpp"
#include "strata/plan/simulate.hpp"

namespace strata {

// What seconds of one direction take of what both directions carry together.
struct BothWays {
  double up = 0, down = 0;  // 0: they do not feel each other
  double drives = 1;        // 1: reads and writes take turns
};
BothWays both_ways(const MachineProfile& machine);

class ResourceLoad {
 public:
  explicit ResourceLoad(const RankRates& rates) : rates_(&rates) {}

  // Bytes; what crosses host memory is counted there too.
  void up(double bytes);
  void down(double bytes);
  void nvme_read(double bytes);
  void nvme_write(double bytes);
  void host_pass(double bytes, double seconds_at_least = 0);  // by the cores of the update lane
  void device_pass(double bytes);
  void device_copy(double bytes);  // beside compute, on the comm lane
  void gather(double bytes);       // received
  void reduce(double bytes);       // sent
  void compute(double seconds) { spend(Resource::compute, seconds); }
  void add(const ResourceLoad& other, double times);

  double seconds(Resource resource) const { return seconds_[static_cast<std::size_t>(resource)]; }
  // The busiest resource's seconds: no schedule is faster. Drives that read and write, and links
  // that go both ways, take what they take at both.
  double bound(const BothWays& both) const;
  double sum() const;

 private:
  void spend(Resource resource, double seconds) {
    seconds_[static_cast<std::size_t>(resource)] += seconds;
  }
  void cross_host_memory(double bytes);

  const RankRates* rates_;
  std::array<double, num_resources> seconds_{};
};

}  // namespace strata
