#include "plan/update_choices.hpp"

#include <algorithm>
#include <map>

#include "plan/spread.hpp"

namespace strata {
namespace {

bool is_update(const Segment& segment) { return segment.kind == SegmentKind::update; }

// By gradient, the position of the segment that adds its last contribution.
std::map<ShardId, std::size_t> completions(const Program& program, const Sequence& sequence) {
  std::map<ShardId, std::size_t> last;
  for (std::size_t at = 0; at < sequence.segments.size(); ++at)
    for (const Use& use : program.segment(sequence.segments[at]).uses)
      if (use.access == Access::accumulate) last[use.shard] = at;
  return last;
}

bool state_lives_on_device(const Layout& layout, const Segment& update) {
  return std::ranges::all_of(update.uses, [&](const Use& use) {
    return use.access != Access::update || layout.tier(use.shard, use.tile) == Tier::device;
  });
}

std::uint64_t state_bytes(const Program& program, const Segment& update) {
  std::uint64_t bytes = 0;
  for (const Use& use : update.uses)
    if (use.access == Access::update)
      bytes += static_cast<std::uint64_t>(program.tile_bytes(use.shard, use.tile));
  return bytes;
}

}  // namespace

std::vector<SegmentId> emission_order(const Program& program, const Sequence& sequence,
                                      UpdateOrder order) {
  std::vector<SegmentId> segments = sequence.segments;
  if (order != UpdateOrder::after_backward) return segments;
  const auto completed = completions(program, sequence);
  const auto updates = std::stable_partition(segments.begin(), segments.end(), [&](SegmentId id) {
    return !is_update(program.segment(id));
  });
  std::stable_sort(updates, segments.end(), [&](SegmentId a, SegmentId b) {
    const auto arrival = [&](SegmentId id) {
      return completed.at(program.use_of(program.segment(id), Role::gradient)->shard);
    };
    return arrival(a) < arrival(b);
  });
  return segments;
}

std::set<SegmentId> device_updates(const Program& program, const Layout& layout,
                                   const Sequence& sequence, double streamed) {
  std::set<SegmentId> chosen;
  Spread spread({1 - streamed, streamed, 0});
  for (SegmentId id : sequence.segments) {
    const Segment& segment = program.segment(id);
    if (!is_update(segment)) continue;
    if (state_lives_on_device(layout, segment) || spread.next(state_bytes(program, segment)) == 1)
      chosen.insert(id);
  }
  return chosen;
}

}  // namespace strata
