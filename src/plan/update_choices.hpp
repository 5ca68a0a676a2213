#pragma once
// What a policy decides about the updates of a sequence: when each is emitted, and which of them
// the device makes.

#include <set>
#include <vector>

#include "plan/layout.hpp"
#include "strata/plan/plan.hpp"

namespace strata {

// The segments in the order they are emitted. After backward, updates follow each other as their
// gradients were completed, which frees gradients and their slots in the order they were taken;
// else they come in the sequence's order, that of next use.
std::vector<SegmentId> emission_order(const Program& program, const Sequence& sequence,
                                      UpdateOrder order);

// Updates on the device: of the tiles whose state lives there, and of the policy's share of the
// others, whose state passes through.
std::set<SegmentId> device_updates(const Program& program, const Layout& layout,
                                   const Sequence& sequence, double streamed);

}  // namespace strata
