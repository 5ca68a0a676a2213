// The norm, the updates and the report.

#include "plan/emitter.hpp"

#include <utility>

namespace strata {
namespace {

bool same_place(const Region& a, const Region& b) {
  return a.tier == b.tier && a.drive == b.drive && a.offset == b.offset;
}

}  // namespace

void Emitter::norm(const Segment& s) {
  std::vector<Operand> operands;
  for (const Use& use : s.uses)
    for (int tile = 0; tile < program_.num_tiles(use.shard); ++tile)
      if (program_.is_own(use.shard, tile))
        operands.push_back({{use.shard, tile, Content::partials},
                            partials(use.shard, tile, Tier::host),
                            Access::read});
  if (program_.world > 1) {
    sum_partials(std::move(operands));
    operands = {{{{}, whole_shard, Content::rank_sums}, rank_sums(), Access::read}};
  }
  operands.push_back({{{}, -1, Content::scalars}, scalars(Tier::host), Access::produce});
  add(OpKind::norm, Lane::update, std::move(operands));
  // The next step may begin on a report: where it must not begin before the updates, they go first.
  if (policy_.update_order != UpdateOrder::after_backward) report();
  share_new_weights();
}

void Emitter::update(const Segment& s) {
  const SegmentId outer = std::exchange(current_, s.id);
  const Tier engine = device_updates_.contains(s.id) ? Tier::device : Tier::host;
  std::vector<Operand> operands;
  for (const Use& use : s.uses) operands.push_back(update_operand(use, engine));
  operands.push_back(update_gate(s, engine));
  if (checkpointing_ == Checkpointing::on) save_beside_update(s, engine);
  add(OpKind::update, engine == Tier::device ? Lane::compute : Lane::update, operands);
  for (const Operand& operand : operands)
    if (operand.access != Access::read) send_home(operand);
  count_down_to_sharing(s);
  current_ = outer;
}

Operand Emitter::update_operand(const Use& use, Tier engine) {
  switch (program_.shard(use.shard).role) {
    case Role::gradient:
      return gradient_operand(use, engine);
    case Role::weight:
      return weight_operand(use, engine);
    default:
      return state_operand(use, engine);
  }
}

Operand Emitter::gradient_operand(const Use& use, Tier engine) {
  const TileRef what{use.shard, use.tile, Content::value};
  const Region home = layout_.home(use.shard, use.tile);
  if (home.tier == engine) return {what, home, Access::read};
  const Region on_host = home.tier == Tier::host ? home : gradient_on_host(what);
  return {what, engine == Tier::host ? on_host : tile_on_device(what, on_host), Access::read};
}

// Where backward still holds the tile, or fetched into a slot of the updates' own.
Region Emitter::gradient_on_host(TileRef what) {
  const Region home = layout_.home(what.shard, what.tile);
  if (home.tier == Tier::nvme) {
    const std::uint64_t bytes = slot_bytes(what.shard, program_.shard(what.shard).dtype);
    const Region held = layout_.ring(SlotPurpose::host_gradient, bytes).find(what, home.bytes);
    if (held.bytes > 0) return held;
  }
  return tile_on_host(what, SlotPurpose::host_update_gradient, Group::state);
}

// Updated where it lives, or where its engine is, by way of host memory.
Operand Emitter::state_operand(const Use& use, Tier engine) {
  const TileRef what{use.shard, use.tile, Content::value};
  const Region home = layout_.home(use.shard, use.tile);
  if (home.tier == engine) return {what, home, Access::update};
  const SlotPurpose staging = state_staging(program_.shard(use.shard).role);
  const Region on_host = home.tier == Tier::host ? home : tile_on_host(what, staging, Group::state);
  return {what, engine == Tier::host ? on_host : tile_on_device(what, on_host), Access::update};
}

// Copies of the weight that forward and backward fetched are out of date from here on.
Operand Emitter::weight_operand(const Use& use, Tier engine) {
  const TileRef what{use.shard, use.tile, Content::value};
  layout_.forget(use.shard);
  if (use.access == Access::update) return state_operand(use, engine);
  const Region home = layout_.home(use.shard, use.tile);
  if (home.tier == engine) return {what, home, Access::produce};
  const SlotPurpose purpose =
      engine == Tier::device ? SlotPurpose::device_weight_tile : SlotPurpose::host_new_weight;
  return {what, tile_slot(what, purpose), Access::produce};
}

// What holds the update back: the global scalars, or (during backward) the tile's own sums of
// squares.
Operand Emitter::update_gate(const Segment& s, Tier engine) {
  if (policy_.update_order == UpdateOrder::during_backward) {
    const Use& gradient = *program_.use_of(s, Role::gradient);
    return {{gradient.shard, gradient.tile, Content::partials},
            partials(gradient.shard, gradient.tile, Tier::host),
            Access::read};
  }
  const TileRef what{{}, -1, Content::scalars};
  if (engine == Tier::device && !device_scalars_ready_) {
    transfer(what, scalars(Tier::host), scalars(Tier::device), Group::state);
    device_scalars_ready_ = true;
  }
  return {what, scalars(engine), Access::read};
}

void Emitter::send_home(const Operand& operand) {
  const Region home = layout_.home(operand.what.shard, operand.what.tile);
  if (same_place(home, operand.region)) return;
  Region source = operand.region;
  if (source.tier == Tier::device && home.tier == Tier::nvme) {
    const Region staged = staging_on_way_home(operand.what);
    transfer(operand.what, source, staged, Group::state);
    source = staged;
  }
  transfer(operand.what, source, home, Group::state);
}

// What passed the device goes home through the slot it came by, which nothing else needs meanwhile.
Region Emitter::staging_on_way_home(TileRef what) {
  const SlotPurpose purpose = state_staging(program_.shard(what.shard).role);
  const std::uint64_t bytes = slot_bytes(what.shard, program_.shard(what.shard).dtype);
  const auto tile = static_cast<std::uint64_t>(program_.tile_bytes(what.shard, what.tile));
  if (const Region held = layout_.ring(purpose, bytes).find(what, tile); held.bytes > 0)
    return held;
  return tile_slot(what, purpose);
}

void Emitter::report() {
  reported_ = true;
  std::vector<Operand> operands;
  for (ShardId shard : metrics_)
    operands.push_back({{shard, -1, Content::value}, metric(shard, Tier::host), Access::read});
  if (program_.world > 1) report_ranks(operands);
  if (has_norm_)
    operands.push_back({{{}, -1, Content::scalars}, scalars(Tier::host), Access::read});
  add(OpKind::report, Lane::update, std::move(operands));
}

}  // namespace strata
