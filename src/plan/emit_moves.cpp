// Slots and transfers between tiers.

#include "plan/emitter.hpp"

#include <algorithm>

#include "strata/core/bytes.hpp"
#include "strata/program/step.hpp"

namespace strata {

// Updates stage weights, new ones and those of split masters that they read, apart from the slots
// that fetches use: sharing them, the next forward would wait for all updates.
SlotPurpose state_staging(Role role) {
  switch (role) {
    case Role::weight:
      return SlotPurpose::host_new_weight;
    case Role::gradient:
      return SlotPurpose::host_gradient;
    case Role::master:
      return SlotPurpose::host_master;
    case Role::moment1:
      return SlotPurpose::host_moment1;
    case Role::moment2:
      return SlotPurpose::host_moment2;
    default:
      return SlotPurpose::host_activation;
  }
}

SlotPurpose device_tile(Role role) {
  switch (role) {
    case Role::gradient:
      return SlotPurpose::device_gradient_tile;
    case Role::master:
      return SlotPurpose::device_master_tile;
    case Role::moment1:
      return SlotPurpose::device_moment1_tile;
    case Role::moment2:
      return SlotPurpose::device_moment2_tile;
    default:
      return SlotPurpose::device_weight_tile;
  }
}

// A slot for one tile; its content will be written whole.
Region Emitter::tile_slot(TileRef what, SlotPurpose purpose) {
  const Shard& shard = program_.shard(what.shard);
  const DType dtype =
      what.content == Content::contribution ? program_.contribution_dtype : shard.dtype;
  const std::int64_t count =
      what.tile < 0 ? shard.count : program_.tile_count(what.shard, what.tile);
  const auto bytes = static_cast<std::uint64_t>(storage_bytes(dtype, count));
  return layout_.ring(purpose, what.tile < 0 ? bytes : slot_bytes(what.shard, dtype))
      .take(what, bytes)
      .part(0, bytes);
}

// The tile's value in host memory: where staging still holds it, or fetched from its home on the
// device or NVMe.
Region Emitter::tile_on_host(TileRef what, SlotPurpose purpose, Group group) {
  const int tile = std::max(what.tile, 0);
  const Region home = layout_.home(what.shard, tile);
  const std::uint64_t ring_bytes =
      what.tile < 0 ? home.bytes : slot_bytes(what.shard, program_.shard(what.shard).dtype);
  if (const Region held = layout_.ring(purpose, ring_bytes).find(what, home.bytes); held.bytes > 0)
    return held;
  const Region slot = tile_slot(what, purpose);
  transfer(what, home, slot, group);
  return slot;
}

Region Emitter::tile_on_device(TileRef what, const Region& on_host) {
  const Region slot = tile_slot(what, device_tile(program_.shard(what.shard).role));
  transfer(what, on_host, slot, Group::state);
  return slot;
}

// Slots serve tiles of all shards of a role: as large as the largest tile.
std::uint64_t Emitter::slot_bytes(ShardId shard, DType dtype) const {
  const std::int64_t most = layout_.most_tile_elements(program_.shard(shard).role);
  return static_cast<std::uint64_t>(storage_bytes(dtype, most));
}

std::pair<OpKind, Lane> Emitter::route(const Region& source, const Region& target, Group group) {
  const bool state = group == Group::state;
  if (source.tier == Tier::nvme) return {OpKind::read, state ? Lane::state_read : Lane::read};
  if (target.tier == Tier::nvme) return {OpKind::write, state ? Lane::state_write : Lane::write};
  if (source.tier == target.tier) return {OpKind::copy, Lane::comm};
  if (target.tier == Tier::device) return {OpKind::copy, state ? Lane::state_h2d : Lane::h2d};
  return {OpKind::copy, state ? Lane::state_d2h : Lane::d2h};
}

void Emitter::transfer(const TileRef& what, const Region& source, const Region& target,
                       Group group) {
  const auto [kind, lane] = route(source, target, group);
  add(kind, lane, {{what, source, Access::read}, {what, target, Access::produce}});
}

Region Emitter::partials(ShardId shard, int tile, Tier tier) {
  const std::int64_t chunks = ceil_div(program_.shard(shard).count, norm_chunk_elements);
  const std::string name =
      "norm partials/" + std::to_string(shard.value) + std::string(tier_name(tier));
  const Region all = layout_.fixed(name, tier, static_cast<std::uint64_t>(chunks) * sizeof(double));
  const std::int64_t first = program_.tile_begin(shard, tile) / norm_chunk_elements;
  const std::int64_t count = ceil_div(program_.tile_count(shard, tile), norm_chunk_elements);
  return all.part(static_cast<std::uint64_t>(first) * sizeof(double),
                  static_cast<std::uint64_t>(count) * sizeof(double));
}

Region Emitter::scalars(Tier tier) {
  return layout_.fixed("scalars/" + std::string(tier_name(tier)), tier, sizeof(UpdateScalars));
}

// In host memory each rank's metrics make a row of one table.
Region Emitter::metric(ShardId shard, Tier tier) {
  const auto bytes = static_cast<std::uint64_t>(program_.shard(shard).bytes());
  if (tier == Tier::host && program_.world > 1)
    return own_part(rank_metrics()).part(metric_offset_.at(shard), bytes);
  const std::string name = "metrics/" + std::to_string(shard.value) + std::string(tier_name(tier));
  return layout_.fixed(name, tier, bytes);
}

}  // namespace strata
