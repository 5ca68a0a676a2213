// What a step hands to a checkpoint, and the commit that ends a step on a versioned store.

#include <algorithm>

#include "plan/emitter.hpp"
#include "plan/saved_state.hpp"
#include "plan/update_choices.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

constexpr std::optional<Tier> no_update;

// By which updates come one after the other: when their gradients are complete, or by next use.
UpdateOrder order_among_updates(UpdateOrder order) {
  return order == UpdateOrder::deferred ? order : UpdateOrder::after_backward;
}

}  // namespace

// In the order in which the updates will want to overwrite them. Those on the device first: the
// accelerator makes their updates, and the next step's segments wait behind these.
void Emitter::save_at_the_beginning() {
  const UpdateOrder order = order_among_updates(policy_.update_order);
  const std::vector<SegmentId> segments = emission_order(program_, sequence_, order);
  for (const Tier tier : {Tier::device, Tier::host})
    for (SegmentId id : segments) {
      const Segment& s = program_.segment(id);
      if (s.kind != SegmentKind::update) continue;
      current_ = id;
      for (const Use& use : s.uses)
        if (is_saved(program_, use.shard, use.tile) && !is_saved_beside_update(s, use) &&
            layout_.tier(use.shard, use.tile) == tier)
          save(s, use, no_update);
    }
}

void Emitter::save_beside_update(const Segment& s, Tier engine) {
  for (const Use& use : s.uses)
    if (is_saved(program_, use.shard, use.tile) && is_saved_beside_update(s, use))
      save(s, use, engine);
}

// What the step has in host memory for its update alone, a split master's weight as well: fetched
// before that, it would be moved twice, and hold up the lanes that the updates need.
bool Emitter::is_saved_beside_update(const Segment& s, const Use& use) const {
  if (layout_.tier(use.shard, use.tile) == Tier::nvme) return true;
  if (!is_split(program_, use.shard)) return false;
  const Use& weight = *program_.use_of(s, Role::weight);
  const Tier tier = layout_.tier(weight.shard, weight.tile);
  return tier == Tier::nvme || (tier == Tier::device && !device_updates_.contains(s.id));
}

void Emitter::save(const Segment& s, const Use& use, std::optional<Tier> engine) {
  std::vector<Operand> operands{operand_to_save(use, engine)};
  if (is_split(program_, use.shard))
    operands.push_back(operand_to_save(*program_.use_of(s, Role::weight), engine));
  add(OpKind::save, Lane::save, std::move(operands));
}

Operand Emitter::operand_to_save(const Use& use, std::optional<Tier> engine) {
  const TileRef what{use.shard, use.tile, Content::value};
  return {what, tile_to_save(what, engine), Access::read};
}

// In host memory: at home, where the update on `engine` has it, or fetched for nothing else.
Region Emitter::tile_to_save(TileRef what, std::optional<Tier> engine) {
  const Region home = layout_.home(what.shard, what.tile);
  if (home.tier == Tier::host) return home;
  if (engine && (home.tier == Tier::nvme || *engine == Tier::host)) {
    const Shard& shard = program_.shard(what.shard);
    const Region held = layout_.ring(state_staging(shard.role), slot_bytes(shard.id, shard.dtype))
                            .find(what, home.bytes);
    ensure(held.bytes > 0);
    return held;
  }
  const Region slot = tile_slot(what, SlotPurpose::host_checkpoint);
  transfer(what, home, slot, Group::state);
  return slot;
}

// After all updates. Of several ranks it reads their sums for what follows from it: the next step's
// wait for it.
void Emitter::commit() {
  current_ = {};
  std::vector<Operand> operands;
  for (const Shard& shard : program_.shards)
    for (int tile = 0; is_optimizer_state(shard.role) && tile < program_.num_tiles(shard.id);
         ++tile)
      operands.push_back(
          {{shard.id, tile, Content::value}, layout_.home(shard.id, tile), Access::read});
  if (program_.world > 1)
    operands.push_back({{{}, whole_shard, Content::rank_sums}, rank_sums(), Access::read});
  operands.push_back({{{}, whole_shard, Content::scalars}, scalars(Tier::host), Access::read});
  add(OpKind::commit, Lane::save, std::move(operands));
}

}  // namespace strata
