#include <algorithm>

#include "strata/plan/plan.hpp"
#include "strata/plan/simulate.hpp"

namespace strata {

std::string_view tier_name(Tier tier) {
  switch (tier) {
    case Tier::device:
      return "gpu";
    case Tier::host:
      return "cpu";
    case Tier::nvme:
      return "nvme";
  }
  return "?";
}

std::string_view lane_name(Lane lane) {
  switch (lane) {
    case Lane::read:
      return "read";
    case Lane::h2d:
      return "h2d";
    case Lane::compute:
      return "compute";
    case Lane::comm:
      return "comm";
    case Lane::d2h:
      return "d2h";
    case Lane::update:
      return "update";
    case Lane::write:
      return "write";
    case Lane::state_read:
      return "state_read";
    case Lane::state_h2d:
      return "state_h2d";
    case Lane::state_d2h:
      return "state_d2h";
    case Lane::state_write:
      return "state_write";
    case Lane::save:
      return "save";
  }
  return "?";
}

std::string_view lane_label(Lane lane) {
  switch (lane) {
    case Lane::read:
      return "NVMe read";
    case Lane::state_read:
      return "NVMe read, state";
    case Lane::h2d:
      return "CPU to GPU";
    case Lane::state_h2d:
      return "CPU to GPU, state";
    case Lane::compute:
      return "GPU compute";
    case Lane::comm:
      return "between GPUs";
    case Lane::d2h:
      return "GPU to CPU";
    case Lane::state_d2h:
      return "GPU to CPU, state";
    case Lane::update:
      return "CPU optimizer";
    case Lane::write:
      return "NVMe write";
    case Lane::state_write:
      return "NVMe write, state";
    case Lane::save:
      return "checkpoint";
  }
  return "?";
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

std::string_view resource_name(Resource resource) {
  switch (resource) {
    case Resource::host_memory:
      return "host memory";
    case Resource::nvme_read:
      return "NVMe read";
    case Resource::nvme_write:
      return "NVMe write";
    default:
      return resource_key(resource);
  }
}

std::string_view op_kind_name(OpKind kind) {
  switch (kind) {
    case OpKind::feed:
      return "feed";
    case OpKind::copy:
      return "copy";
    case OpKind::read:
      return "read";
    case OpKind::write:
      return "write";
    case OpKind::run:
      return "run";
    case OpKind::accumulate:
      return "accumulate";
    case OpKind::square:
      return "square";
    case OpKind::norm:
      return "norm";
    case OpKind::update:
      return "update";
    case OpKind::gather:
      return "gather";
    case OpKind::reduce:
      return "reduce";
    case OpKind::report:
      return "report";
    case OpKind::sum:
      return "sum";
    case OpKind::save:
      return "save";
    case OpKind::commit:
      return "commit";
  }
  return "?";
}

const Schedule* Plan::schedule(std::string_view name) const {
  const auto found = std::ranges::find(schedules, name, &Schedule::name);
  return found == schedules.end() ? nullptr : &*found;
}

}  // namespace strata
