#pragma once
// What the ops of a step use of a machine: bytes over its links, and the time in which each
// resource had something to do. The same functions serve measured and predicted times. Pure
// functions; any thread.

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "strata/plan/plan.hpp"
#include "strata/plan/simulate.hpp"

namespace strata {

template <typename Value>
using PerResource = std::array<Value, num_resources>;

// The resource that a lane keeps busy; step and state lanes share it.
Resource resource_of_lane(Lane lane);
// As metrics.jsonl and the log name it: "h2d", "nvme_read".
std::string_view resource_key(Resource resource);
bool is_link(Resource resource);

// Bytes that an op moves over the link of its lane, as direct I/O rounds them; 0: moves none.
std::uint64_t moved_bytes(const Op& op, std::uint64_t io_alignment);
PerResource<std::uint64_t> moved_bytes(const Plan& plan, const Schedule& schedule);

// Seconds in which at least one op was under way; `times` is indexed by OpId.
PerResource<double> busy_seconds(const Schedule& schedule, std::span<const OpTime> times);

}  // namespace strata
