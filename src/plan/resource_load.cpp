#include "plan/resource_load.hpp"

#include <algorithm>
#include <numeric>

namespace strata {

BothWays both_ways(const MachineProfile& machine) {
  BothWays both;
  const LinkProfile& link = machine.link;
  if (link.both_bytes_per_s > 0)
    both.up = link.up_bytes_per_s / link.both_bytes_per_s,
    both.down = link.down_bytes_per_s / link.both_bytes_per_s;
  if (machine.drives.empty()) return both;
  double carried = 0;
  for (const DriveProfile& drive : machine.drives) carried += mixed_capacity(drive);
  both.drives = static_cast<double>(machine.drives.size()) / carried;
  return both;
}

void ResourceLoad::cross_host_memory(double bytes) {
  spend(Resource::host_memory, bytes / rates_->host_memory());
}

void ResourceLoad::up(double bytes) {
  if (bytes <= 0) return;
  spend(Resource::up, bytes / rates_->up());
  cross_host_memory(bytes);
}

void ResourceLoad::down(double bytes) {
  if (bytes <= 0) return;
  spend(Resource::down, bytes / rates_->down());
  cross_host_memory(bytes);
}

void ResourceLoad::nvme_read(double bytes) {
  if (bytes <= 0) return;
  spend(Resource::nvme_read, bytes / rates_->all_drives_read());
  cross_host_memory(bytes);
}

void ResourceLoad::nvme_write(double bytes) {
  if (bytes <= 0) return;
  spend(Resource::nvme_write, bytes / rates_->all_drives_write());
  cross_host_memory(bytes);
}

void ResourceLoad::host_pass(double bytes, double seconds_at_least) {
  if (bytes <= 0) return;
  const double seconds = bytes / rates_->host_memory();
  spend(Resource::host_memory, seconds);
  spend(Resource::update, std::max(seconds, seconds_at_least));
}

void ResourceLoad::device_pass(double bytes) {
  if (bytes > 0) spend(Resource::compute, bytes / rates_->accelerator_memory());
}

void ResourceLoad::device_copy(double bytes) {
  if (bytes > 0) spend(Resource::comm, 2 * bytes / rates_->accelerator_memory());
}

void ResourceLoad::gather(double bytes) {
  if (bytes > 0) spend(Resource::comm, bytes / rates_->gather());
}

void ResourceLoad::reduce(double bytes) {
  if (bytes > 0) spend(Resource::comm, bytes / rates_->reduce());
}

void ResourceLoad::add(const ResourceLoad& other, double times) {
  for (std::size_t r = 0; r < seconds_.size(); ++r) seconds_[r] += times * other.seconds_[r];
}

double ResourceLoad::bound(const BothWays& both) const {
  const double drives = seconds(Resource::nvme_read) + seconds(Resource::nvme_write);
  const double link = seconds(Resource::up) * both.up + seconds(Resource::down) * both.down;
  return std::max({*std::ranges::max_element(seconds_), drives * both.drives, link});
}

double ResourceLoad::sum() const { return std::accumulate(seconds_.begin(), seconds_.end(), 0.0); }

}  // namespace strata
