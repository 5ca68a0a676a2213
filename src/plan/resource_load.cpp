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

void ResourceLoad::add(const ResourceLoad& other, double times) {
  for (std::size_t use = 0; use < num_uses; ++use) amounts_[use] += times * other.amounts_[use];
}

std::array<double, num_resources> ResourceLoad::seconds() const {
  std::array<double, num_resources> seconds{};
  const auto on = [&](Resource r) -> double& { return seconds[static_cast<std::size_t>(r)]; };
  const double passes = at(Use::host_pass, &RankRates::host_memory);
  const double updates = at(Use::host_update, &RankRates::host_memory);
  on(Resource::compute) =
      amount(Use::compute_seconds) + at(Use::device_pass, &RankRates::accelerator_memory);
  on(Resource::comm) = 2 * at(Use::device_copy, &RankRates::accelerator_memory) +
                       at(Use::gather, &RankRates::gather) + at(Use::reduce, &RankRates::reduce);
  on(Resource::up) = at(Use::up, &RankRates::up);
  on(Resource::down) = at(Use::down, &RankRates::down);
  on(Resource::nvme_read) = at(Use::nvme_read, &RankRates::all_drives_read);
  on(Resource::nvme_write) = at(Use::nvme_write, &RankRates::all_drives_write);
  on(Resource::update) = passes + std::max(updates, amount(Use::host_update_seconds));
  on(Resource::host_memory) = passes + updates;
  for (const Use use : {Use::up, Use::down, Use::nvme_read, Use::nvme_write})
    on(Resource::host_memory) += at(use, &RankRates::host_memory);
  return seconds;
}

double ResourceLoad::bound(const BothWays& both) const {
  const auto busy = seconds();
  const auto of = [&](Resource r) { return busy[static_cast<std::size_t>(r)]; };
  const double drives = of(Resource::nvme_read) + of(Resource::nvme_write);
  const double link = of(Resource::up) * both.up + of(Resource::down) * both.down;
  return std::max({*std::ranges::max_element(busy), drives * both.drives, link});
}

double ResourceLoad::sum() const {
  const auto busy = seconds();
  return std::accumulate(busy.begin(), busy.end(), 0.0);
}

}  // namespace strata
