#include "strata/telemetry/resource_use.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "strata/core/error.hpp"

namespace strata {
namespace {

using Stretch = BusyTime::Stretch;

double covered(std::vector<Stretch>& stretches) {
  std::ranges::sort(stretches, {}, &Stretch::start);
  double sum = 0, end = -std::numeric_limits<double>::infinity();
  for (const Stretch& s : stretches) {
    sum += std::max(0.0, s.end - std::max(s.start, end));
    end = std::max(end, s.end);
  }
  return sum;
}

}  // namespace

Resource resource_of_lane(Lane lane) {
  switch (lane) {
    case Lane::read:
    case Lane::state_read:
      return Resource::nvme_read;
    case Lane::write:
    case Lane::state_write:
    case Lane::save:
      return Resource::nvme_write;
    case Lane::h2d:
    case Lane::state_h2d:
      return Resource::up;
    case Lane::d2h:
    case Lane::state_d2h:
      return Resource::down;
    case Lane::update:
      return Resource::update;
    case Lane::comm:
      return Resource::comm;
    case Lane::compute:
      break;
  }
  return Resource::compute;
}

bool is_link(Resource resource) {
  switch (resource) {
    case Resource::comm:
    case Resource::up:
    case Resource::down:
    case Resource::nvme_read:
    case Resource::nvme_write:
      return true;
    case Resource::compute:
    case Resource::update:
    case Resource::host_memory:
      break;
  }
  return false;
}

PerResource<std::uint64_t> moved_bytes(const Plan& plan, const Schedule& schedule) {
  PerResource<std::uint64_t> bytes{};
  for (const Op& op : schedule.ops)
    bytes[static_cast<std::size_t>(resource_of_lane(op.lane))] +=
        link_bytes(op, plan.limits.io_alignment);
  return bytes;
}

PerResource<double> transfer_seconds(const Plan& plan, const Schedule& schedule,
                                     std::span<const OpTime> times) {
  ensure(times.size() == schedule.ops.size());
  PerResource<std::vector<Stretch>> stretches;
  for (const Op& op : schedule.ops) {
    const OpTime& time = times[op.id.index()];
    if (link_bytes(op, plan.limits.io_alignment) > 0)
      stretches[static_cast<std::size_t>(resource_of_lane(op.lane))].push_back(
          {time.start, time.end});
  }
  PerResource<double> seconds{};
  for (std::size_t i = 0; i < seconds.size(); ++i) seconds[i] = covered(stretches[i]);
  return seconds;
}

void BusyTime::add(const Schedule& schedule, std::span<const OpTime> times, double at_s) {
  ensure(times.size() == schedule.ops.size());
  for (const Op& op : schedule.ops) {
    const OpTime& time = times[op.id.index()];
    stretches_[static_cast<std::size_t>(resource_of_lane(op.lane))].push_back(
        {time.start + at_s, time.end + at_s});
  }
}

PerResource<double> BusyTime::within(double begin, double end) {
  PerResource<double> busy{};
  for (std::size_t i = 0; i < busy.size(); ++i) {
    std::vector<Stretch> cut = stretches_[i];
    for (Stretch& s : cut) s = {std::clamp(s.start, begin, end), std::clamp(s.end, begin, end)};
    busy[i] = covered(cut);
    std::erase_if(stretches_[i], [&](const Stretch& s) { return s.end <= end; });
  }
  return busy;
}

}  // namespace strata
