#include "plan/emitter.hpp"

#include <algorithm>

#include "plan/saved_state.hpp"
#include "plan/update_choices.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

SlotPurpose device_slots(Role role) {
  if (role == Role::activation) return SlotPurpose::device_activation;
  return role == Role::saved ? SlotPurpose::device_saved : SlotPurpose::device_activation_gradient;
}

SlotPurpose host_slots(Role role) {
  return role == Role::saved ? SlotPurpose::host_saved : SlotPurpose::host_activation;
}

}  // namespace

Emitter::Emitter(const Program& program, const Policy& policy, Layout& layout,
                 const Sequence& sequence, Checkpointing checkpointing)
    : program_(program),
      policy_(policy),
      layout_(layout),
      sequence_(sequence),
      device_updates_(device_updates(program, layout, sequence, policy.streamed_updates)),
      checkpointing_(checkpointing) {
  schedule_.name =
      checkpointing == Checkpointing::on ? saving_schedule : std::string_view(sequence.name);
  find_continued_sums();
  std::map<ShardId, std::size_t> first_use;
  for (std::size_t at = 0; at < sequence.segments.size(); ++at) {
    const SegmentId id = sequence.segments[at];
    const Segment& s = program.segment(id);
    for (const Use& use : s.uses)
      if (at > first_use.emplace(use.shard, at).first->second + 1) kept_.insert(use.shard);
    has_norm_ |= s.kind == SegmentKind::norm;
    if (s.kind == SegmentKind::update && policy.update_order == UpdateOrder::during_backward)
      update_of_tile_[{s.block, program.use_of(s, Role::gradient)->tile}] = id;
    for (const Use& use : s.uses)
      if (use.access == Access::accumulate) ++contributions_total_[use.shard];
    if (s.kind == SegmentKind::update) count_update_of_whole(s);
    place_metrics(s);
  }
}

Schedule Emitter::emit() {
  layout_.reset_rings();
  if (checkpointing_ == Checkpointing::on) save_at_the_beginning();
  for (SegmentId id : emission_order(program_, sequence_, policy_.update_order))
    segment(program_.segment(id));
  add_all_contributions();
  share_new_weights();
  if (has_norm_ && policy_.versioned_state) commit();
  if (!reported_) report();
  if (has_norm_ && policy_.update_order == UpdateOrder::after_backward)
    schedule_.end = StepEnd::barrier;
  derive_edges(schedule_);
  return std::move(schedule_);
}

void Emitter::segment(const Segment& s) {
  current_ = s.id;
  switch (s.kind) {
    case SegmentKind::norm:
      add_all_contributions();
      norm(s);
      break;
    case SegmentKind::update:
      if (policy_.update_order != UpdateOrder::during_backward) update(s);
      break;
    default:
      run(s);
      break;
  }
}

Op& Emitter::add(OpKind kind, Lane lane, std::vector<Operand> operands) {
  Op op;
  op.kind = kind;
  op.lane = lane;
  op.segment = current_;
  op.operands = std::move(operands);
  schedule_.ops.push_back(std::move(op));
  return schedule_.ops.back();
}

// --- Model segments

void Emitter::run(const Segment& s) {
  std::vector<Operand> operands;
  in_use_.clear();
  for (const Use& use : s.uses) {
    operands.push_back(bind(use));
    in_use_.push_back(operands.back().region);
  }
  add_contributions_in_use();
  sum_pending_contributions();
  add_contributions_in_use();
  if (s.scratch_bytes > 0) {
    std::uint64_t most = 0;  // one region serves all: the compute lane runs one segment at a time
    for (const Segment& other : program_.segments) most = std::max(most, other.scratch_bytes);
    const Region scratch = layout_.fixed("scratch", Tier::device, most);
    operands.push_back(
        {{{}, -1, Content::scratch}, scratch.part(0, s.scratch_bytes), Access::produce});
  }
  add(OpKind::run, Lane::compute, operands);
  for (const Operand& operand : operands)
    if (operand.access != Access::read && operand.what.content != Content::scratch) settle(operand);
}

Operand Emitter::bind(const Use& use) {
  const Shard& shard = program_.shard(use.shard);
  if (use.access == Access::accumulate) {
    const TileRef contributed = whole_of(
        use.shard, program_.world == 1 ? Content::contribution : Content::rank_contribution);
    const auto bytes = static_cast<std::uint64_t>(program_.whole_elements(use.shard) *
                                                  dtype_bytes(program_.contribution_dtype));
    return {contributed,
            layout_.ring(SlotPurpose::device_contribution, bytes).take(contributed, bytes, in_use_),
            use.access};
  }
  const TileRef what = whole_of(use.shard);
  if (use.access == Access::produce) return {what, produced_on_device(use.shard), use.access};
  ensure(use.access == Access::read);
  switch (shard.role) {
    case Role::weight:
      return {what, weight_on_device(use.shard), use.access};
    case Role::input:
      return {what, input_on_device(use.shard), use.access};
    default:
      return {what, activation_on_device(use.shard), use.access};
  }
}

Region Emitter::weight_on_device(ShardId shard) {
  const Shard& s = program_.shard(shard);
  const bool is_sliced = s.sharing == Sharing::sliced;
  if (!is_sliced && layout_.all_on(shard, Tier::device)) return layout_.whole_home(shard);
  const auto bytes =
      static_cast<std::uint64_t>(program_.whole_elements(shard) * dtype_bytes(s.dtype));
  SlotRing& ring = layout_.ring(SlotPurpose::device_weight, bytes);
  const TileRef whole = whole_of(shard);
  if (const Region held = ring.find(whole, bytes); held.bytes > 0) return held;
  const Region slot = ring.take(whole, bytes, in_use_);
  if (is_sliced)
    gather_weight(shard, slot);
  else
    fetch_tiles(shard, slot);
  return slot;
}

// All tiles of this rank, side by side.
void Emitter::fetch_tiles(ShardId shard, const Region& target) {
  for (int tile = 0; tile < program_.num_tiles(shard); ++tile) {
    const TileRef what{shard, tile, Content::value};
    Region source = layout_.home(shard, tile);
    if (source.tier == Tier::nvme)
      source = tile_on_host(what, SlotPurpose::host_weight, Group::step);
    const auto begin = static_cast<std::uint64_t>(program_.tile_begin(shard, tile) *
                                                  dtype_bytes(program_.shard(shard).dtype));
    transfer(what, source, target.part(begin, source.bytes), Group::step);
  }
}

Region Emitter::activation_on_device(ShardId shard) {
  const TileRef what{shard, -1, Content::value};
  const Shard& s = program_.shard(shard);
  const auto bytes = static_cast<std::uint64_t>(s.bytes());
  if (stays_on_device(shard)) return layout_.home(shard, 0);
  SlotRing& ring = layout_.ring(device_slots(s.role), bytes);
  if (const Region held = ring.find(what, bytes); held.bytes > 0) return held;
  ensure(layout_.has_home(shard) && kept_.contains(shard));
  Region source = layout_.home(shard, 0);
  if (source.tier == Tier::nvme) source = tile_on_host(what, host_slots(s.role), Group::step);
  const Region slot = ring.take(what, bytes, in_use_);
  transfer(what, source, slot, Group::step);
  return slot;
}

Region Emitter::input_on_device(ShardId shard) {
  const TileRef what{shard, -1, Content::value};
  const auto bytes = static_cast<std::uint64_t>(program_.shard(shard).bytes());
  SlotRing& ring = layout_.ring(SlotPurpose::device_input, bytes);
  if (const Region held = ring.find(what, bytes); held.bytes > 0) return held;
  const Region slot = ring.take(what, bytes, in_use_);
  add(OpKind::feed, Lane::h2d, {{what, slot, Access::produce}});
  return slot;
}

Region Emitter::produced_on_device(ShardId shard) {
  const Shard& s = program_.shard(shard);
  const TileRef what{shard, -1, Content::value};
  const auto bytes = static_cast<std::uint64_t>(s.bytes());
  if (s.role == Role::metric) return metric(shard, Tier::device);
  if (stays_on_device(shard)) return layout_.home(shard, 0);
  return layout_.ring(device_slots(s.role), bytes).take(what, bytes, in_use_);
}

bool Emitter::stays_on_device(ShardId shard) const {
  return kept_.contains(shard) && layout_.has_home(shard) && layout_.tier(shard, 0) == Tier::device;
}

void Emitter::settle(const Operand& operand) {
  if (operand.access == Access::accumulate) {
    if (program_.world > 1) return pending_contributions_.push_back({operand, current_});
    return add_contribution(operand.what.shard, operand.region);
  }
  switch (program_.shard(operand.what.shard).role) {
    case Role::activation:
    case Role::saved:
      return keep_activation(operand);
    case Role::metric:
      return fetch_metric(operand);
    default:
      return;
  }
}

void Emitter::keep_activation(const Operand& operand) {
  if (!layout_.has_home(operand.what.shard) || !kept_.contains(operand.what.shard)) return;
  const Region home = layout_.home(operand.what.shard, 0);
  if (home.tier == Tier::device) return;
  if (home.tier == Tier::host) return transfer(operand.what, operand.region, home, Group::step);
  const SlotPurpose staging = host_slots(program_.shard(operand.what.shard).role);
  const Region staged = tile_slot(operand.what, staging);
  transfer(operand.what, operand.region, staged, Group::step);
  transfer(operand.what, staged, home, Group::step);
}

void Emitter::fetch_metric(const Operand& operand) {
  transfer(operand.what, operand.region, metric(operand.what.shard, Tier::host), Group::step);
  metrics_.push_back(operand.what.shard);
}

}  // namespace strata
