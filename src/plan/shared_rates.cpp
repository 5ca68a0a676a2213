#include "plan/shared_rates.hpp"

#include <algorithm>

#include "plan/rank_rates.hpp"

namespace strata {
namespace {

void draw(Draws& draws, int rate, double share) {
  if (share > 0) draws.add(rate, share);
}

}  // namespace

SharedRates::SharedRates(const MachineProfile& machine) {
  const double both = machine.link.both_bytes_per_s;
  both_up_ = both > 0 ? machine.link.up_bytes_per_s / both : 0;
  both_down_ = both > 0 ? machine.link.down_bytes_per_s / both : 0;
  link_ = add_directions(std::max(both_up_, both_down_));
  host_memory_ = add({}, 1);
  for (const DriveProfile& drive : machine.drives) {
    const double both_share = 1 / mixed_capacity(drive);
    drives_.push_back({add_directions(both_share), both_share});
  }
}

int SharedRates::add(const SharedRate& rate, double most) {
  rates_.push_back(rate);
  most_.push_back(most);
  return static_cast<int>(rates_.size()) - 1;
}

// Of both directions together 1 is drawn at most; one that is alone may draw more of it.
SharedRates::Directions SharedRates::add_directions(double share_of_one) {
  const int one = add({}, 1), other = add({}, 1);
  return {one, other, add({{one, other}}, std::max(1.0, share_of_one))};
}

std::vector<Draws> SharedRates::draws(const std::vector<OpDemand>& demands) const {
  std::vector<Draws> all;
  all.reserve(demands.size());
  for (const OpDemand& demand : demands) all.push_back(draws(demand));
  return all;
}

Draws SharedRates::draws(const OpDemand& demand) const {
  Draws draws;
  if (demand.seconds == 0) return draws;
  const auto share = [&](Resource of) {
    return demand.busy[static_cast<std::size_t>(of)] / demand.seconds;
  };
  draw(draws, host_memory_, share(Resource::host_memory));
  draw(draws, link_.one, share(Resource::up));
  draw(draws, link_.other, share(Resource::down));
  draw(draws, link_.both, share(Resource::up) * both_up_ + share(Resource::down) * both_down_);
  if (demand.drive != no_drive) add_drive(draws, demand, share(Resource::nvme_read) > 0);
  return draws;
}

void SharedRates::add_drive(Draws& draws, const OpDemand& demand, bool reads) const {
  const Drive& drive = drives_[static_cast<std::size_t>(demand.drive)];
  const double share = demand.drive_seconds / demand.seconds;
  draw(draws, reads ? drive.rates.one : drive.rates.other, share);
  draw(draws, drive.rates.both, share * drive.both_share);
}

double SharedRates::least_seconds(const std::vector<OpDemand>& demands,
                                  const std::vector<Draws>& draws) const {
  std::vector<double> seconds(rates_.size(), 0);
  for (std::size_t op = 0; op < demands.size(); ++op)
    for (int i = 0; i < draws[op].count; ++i) {
      const Draw& one = draws[op].of[static_cast<std::size_t>(i)];
      const auto rate = static_cast<std::size_t>(one.rate);
      seconds[rate] += one.share * demands[op].seconds / most_[rate];
    }
  return *std::ranges::max_element(seconds);
}

}  // namespace strata
