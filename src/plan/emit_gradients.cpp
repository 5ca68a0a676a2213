// How a gradient contribution reaches its sum, wherever that lives.

#include "plan/emitter.hpp"

namespace strata {

void Emitter::find_continued_sums() {
  SegmentId before;
  ShardId sum;  // what `before` alone added to
  for (SegmentId id : sequence_.segments) {
    std::vector<ShardId> sums;
    for (const Use& use : program_.segment(id).uses)
      if (use.access == Access::accumulate) sums.push_back(use.shard);
    if (sums.empty()) continue;
    const ShardId only = sums.size() == 1 ? sums.front() : ShardId{};
    if (only.valid() && only == sum) sum_continues_.insert(before);
    before = id;
    sum = only;
  }
}

// Whether staging still holds all of the sum when the next contribution comes, as it does in a
// group of micro-batches: then NVMe need not see it before it is whole.
bool Emitter::stays_staged(ShardId shard) {
  if (!sum_continues_.contains(current_)) return false;
  int passing = 0;
  for (int tile = 0; tile < program_.num_tiles(shard); ++tile)
    passing += layout_.tier(shard, tile) == Tier::nvme;
  const std::uint64_t bytes = slot_bytes(shard, program_.shard(shard).dtype);
  return passing <= layout_.ring(SlotPurpose::host_gradient, bytes).pool().num_slots;
}

bool Emitter::stored_as_contributed(ShardId shard) const {
  return contributions_total_.at(shard) == 1 &&
         program_.shard(shard).dtype == program_.contribution_dtype;
}

void Emitter::add_contribution(ShardId shard, const Region& contribution) {
  const bool first = contributions_seen_[shard]++ == 0;
  const bool last = contributions_seen_[shard] == contributions_total_[shard];
  if (first) layout_.forget(shard);  // Last step's gradient, still in staging, is out of date.
  for (int tile = 0; tile < program_.num_tiles(shard); ++tile) {
    const std::int64_t width = dtype_bytes(program_.contribution_dtype);
    const Region part =
        contribution.part(static_cast<std::uint64_t>(program_.tile_begin(shard, tile) * width),
                          static_cast<std::uint64_t>(program_.tile_count(shard, tile) * width));
    add_tile(shard, tile, part);
    const auto early = update_of_tile_.find({program_.shard(shard).block, tile});
    if (last && early != update_of_tile_.end()) update(program_.segment(early->second));
  }
}

void Emitter::add_tile(ShardId shard, int tile, const Region& part) {
  const TileRef contributed{shard, tile, Content::contribution}, value{shard, tile, Content::value};
  const Region home = layout_.home(shard, tile);
  const Region source = contribution_beside(contributed, part, home.tier);
  const Region sum = home.tier == Tier::nvme ? staged_sum(value) : home;
  const bool first = contributions_seen_[shard] == 1;
  if (stored_as_contributed(shard)) {
    add(OpKind::copy, route(source, sum, Group::step).second,
        {{contributed, source, Access::read}, {value, sum, Access::produce}});
  } else {
    add(OpKind::accumulate, sum.tier == Tier::device ? Lane::compute : Lane::update,
        {{contributed, source, Access::read},
         {value, sum, first ? Access::produce : Access::update}})
        .first_contribution = first;
  }
  const bool last = contributions_seen_[shard] == contributions_total_[shard];
  if (last) finish_gradient_tile(shard, tile, sum);
  if (home.tier == Tier::nvme && (last || !stays_staged(shard)))
    transfer(value, sum, home, Group::step);
}

// A contribution that is added to a sum off the device is staged in host memory first; one that is
// the sum goes straight there.
Region Emitter::contribution_beside(TileRef contributed, const Region& part, Tier home) {
  if (home == Tier::device || stored_as_contributed(contributed.shard)) return part;
  const Region staged = tile_slot(contributed, SlotPurpose::host_contribution);
  transfer(contributed, part, staged, Group::step);
  return staged;
}

// The sum of a tile whose home is on NVMe: begun by the first contribution, fetched for the others.
Region Emitter::staged_sum(TileRef value) {
  if (contributions_seen_[value.shard] == 1) return tile_slot(value, SlotPurpose::host_gradient);
  return tile_on_host(value, SlotPurpose::host_gradient, Group::step);
}

// Of a replicated gradient the norm takes this rank's part; the others sum theirs.
void Emitter::finish_gradient_tile(ShardId shard, int tile, const Region& where) {
  if (!program_.is_own(shard, tile) &&
      !update_of_tile_.contains({program_.shard(shard).block, tile}))
    return;
  const TileRef value{shard, tile, Content::value}, sums{shard, tile, Content::partials};
  const Region on_host = partials(shard, tile, Tier::host);
  if (where.tier == Tier::host) {
    add(OpKind::square, Lane::update,
        {{value, where, Access::read}, {sums, on_host, Access::produce}});
    return;
  }
  const Region on_device = partials(shard, tile, Tier::device);
  add(OpKind::square, Lane::compute,
      {{value, where, Access::read}, {sums, on_device, Access::produce}});
  transfer(sums, on_device, on_host, Group::step);
}

}  // namespace strata
