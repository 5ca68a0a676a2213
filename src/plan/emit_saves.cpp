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

// What is not on NVMe, in the order in which the updates will want to overwrite it.
void Emitter::save_at_the_beginning() {
  const UpdateOrder order = order_among_updates(policy_.update_order);
  for (SegmentId id : emission_order(program_, sequence_, order)) {
    const Segment& s = program_.segment(id);
    if (s.kind != SegmentKind::update) continue;
    current_ = id;
    for (const Use& use : s.uses)
      if (is_saved(program_, use.shard, use.tile) &&
          layout_.tier(use.shard, use.tile) != Tier::nvme)
        save(s, use, no_update);
  }
}

// What its update reads from NVMe, once that has it in host memory.
void Emitter::save_beside_update(const Segment& s, Tier engine) {
  for (const Use& use : s.uses)
    if (is_saved(program_, use.shard, use.tile) && layout_.tier(use.shard, use.tile) == Tier::nvme)
      save(s, use, engine);
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
