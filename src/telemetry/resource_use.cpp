#include "strata/telemetry/resource_use.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

struct Stretch {
  double start, end;
};

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

std::string_view resource_key(Resource resource) {
  switch (resource) {
    case Resource::compute:
      return "compute";
    case Resource::comm:
      return "comm";
    case Resource::up:
      return "h2d";
    case Resource::down:
      return "d2h";
    case Resource::update:
      return "update";
    case Resource::host_memory:
      return "host_memory";
    case Resource::nvme_read:
      return "nvme_read";
    case Resource::nvme_write:
      return "nvme_write";
  }
  return "?";
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

std::uint64_t moved_bytes(const Op& op, std::uint64_t io_alignment) {
  switch (op.kind) {
    case OpKind::feed:
    case OpKind::copy:
      return op.operands.back().region.bytes;
    case OpKind::read:
      return align_up(op.operands.front().region.bytes, io_alignment);
    case OpKind::write:
      return align_up(op.operands.back().region.bytes, io_alignment);
    case OpKind::gather:
    case OpKind::reduce:
      return collective_bytes(op);
    case OpKind::run:
    case OpKind::accumulate:
    case OpKind::square:
    case OpKind::norm:
    case OpKind::update:
    case OpKind::report:
    case OpKind::sum:
      break;
  }
  return 0;
}

PerResource<std::uint64_t> moved_bytes(const Plan& plan, const Schedule& schedule) {
  PerResource<std::uint64_t> bytes{};
  for (const Op& op : schedule.ops)
    bytes[static_cast<std::size_t>(resource_of_lane(op.lane))] +=
        moved_bytes(op, plan.limits.io_alignment);
  return bytes;
}

PerResource<double> busy_seconds(const Schedule& schedule, std::span<const OpTime> times) {
  ensure(times.size() == schedule.ops.size());
  PerResource<std::vector<Stretch>> stretches;
  for (const Op& op : schedule.ops) {
    const OpTime& time = times[op.id.index()];
    stretches[static_cast<std::size_t>(resource_of_lane(op.lane))].push_back(
        {time.start, time.end});
  }
  PerResource<double> busy{};
  for (std::size_t i = 0; i < busy.size(); ++i) busy[i] = covered(stretches[i]);
  return busy;
}

}  // namespace strata
