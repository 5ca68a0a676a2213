#include "plan/emitter.hpp"

#include <algorithm>

#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"
#include "strata/program/step.hpp"

namespace strata {
namespace {

// Updates stage new weights apart from the slots that fetches use: sharing them, the next forward would wait for all updates.
SlotPurpose staging_purpose(Role role) {
  switch (role) {
    case Role::weight: return SlotPurpose::host_new_weight;
    case Role::gradient: return SlotPurpose::host_gradient;
    case Role::master: return SlotPurpose::host_master;
    case Role::moment1: return SlotPurpose::host_moment1;
    case Role::moment2: return SlotPurpose::host_moment2;
    default: return SlotPurpose::host_activation;
  }
}

bool same_place(const Region& a, const Region& b) {
  return a.tier == b.tier && a.drive == b.drive && a.offset == b.offset;
}

}  // namespace

Emitter::Emitter(const Program& program, const Policy& policy, Layout& layout, const Sequence& sequence)
    : program_(program), policy_(policy), layout_(layout), sequence_(sequence) {
  schedule_.name = sequence.name;
  std::map<ShardId, std::size_t> first_use;
  for (std::size_t at = 0; at < sequence.segments.size(); ++at) {
    const SegmentId id = sequence.segments[at];
    const Segment& s = program.segment(id);
    for (const Use& use : s.uses)
      if (at > first_use.emplace(use.shard, at).first->second + 1) kept_.insert(use.shard);
    has_norm_ |= s.kind == SegmentKind::norm;
    if (s.kind == SegmentKind::update && policy.update_order == UpdateOrder::during_backward)
      update_of_tile_[{s.block, s.tile}] = id;
    for (const Use& use : s.uses)
      if (use.access == Access::accumulate) ++contributions_total_[use.shard];
  }
}

Schedule Emitter::emit() {
  layout_.reset_rings();
  for (SegmentId id : sequence_.segments) segment(program_.segment(id));
  if (!has_norm_) report();
  derive_edges(schedule_);
  return std::move(schedule_);
}

void Emitter::segment(const Segment& s) {
  current_ = s.id;
  switch (s.kind) {
    case SegmentKind::norm: norm(s); break;
    case SegmentKind::update:
      if (policy_.update_order == UpdateOrder::after_backward) update(s);
      break;
    default: run(s); break;
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
  for (const Use& use : s.uses) operands.push_back(bind(use));
  if (s.scratch_bytes > 0) {
    std::uint64_t most = 0;  // one region serves all: the compute lane runs one segment at a time
    for (const Segment& other : program_.segments) most = std::max(most, other.scratch_bytes);
    const Region scratch = layout_.fixed("scratch", Tier::device, most);
    operands.push_back({{{}, -1, Content::scratch}, scratch.part(0, s.scratch_bytes), Access::produce});
  }
  add(OpKind::run, Lane::compute, operands);
  for (const Operand& operand : operands)
    if (operand.access != Access::read && operand.what.content != Content::scratch) settle(operand);
}

Operand Emitter::bind(const Use& use) {
  const Shard& shard = program_.shard(use.shard);
  const TileRef what{use.shard, -1, use.access == Access::accumulate ? Content::contribution : Content::value};
  if (use.access == Access::accumulate) {
    const std::uint64_t bytes = static_cast<std::uint64_t>(shard.count * dtype_bytes(program_.contribution_dtype));
    return {what, layout_.ring(SlotPurpose::device_contribution, bytes).take(what, bytes), use.access};
  }
  if (use.access == Access::produce) return {what, produced_on_device(use.shard), use.access};
  ensure(use.access == Access::read);
  switch (shard.role) {
    case Role::weight: return {what, weight_on_device(use.shard), use.access};
    case Role::input: return {what, input_on_device(use.shard), use.access};
    default: return {what, activation_on_device(use.shard), use.access};
  }
}

Region Emitter::weight_on_device(ShardId shard) {
  if (layout_.all_on(shard, Tier::device)) return layout_.whole_home(shard);
  const auto bytes = static_cast<std::uint64_t>(program_.shard(shard).bytes());
  SlotRing& ring = layout_.ring(SlotPurpose::device_weight, bytes);
  const TileRef whole{shard, -1, Content::value};
  if (const Region held = ring.find(whole, bytes); held.bytes > 0) return held;
  const Region slot = ring.take(whole, bytes);
  for (int tile = 0; tile < program_.num_tiles(shard); ++tile) {
    const TileRef what{shard, tile, Content::value};
    Region source = layout_.home(shard, tile);
    if (source.tier == Tier::nvme) source = tile_on_host(what, SlotPurpose::host_weight, Group::step);
    const auto begin = static_cast<std::uint64_t>(program_.tile_begin(shard, tile) *
                                                  dtype_bytes(program_.shard(shard).dtype));
    transfer(what, source, slot.part(begin, source.bytes), Group::step);
  }
  return slot;
}

Region Emitter::activation_on_device(ShardId shard) {
  const TileRef what{shard, -1, Content::value};
  const Shard& s = program_.shard(shard);
  const auto bytes = static_cast<std::uint64_t>(s.bytes());
  if (stays_on_device(shard)) return layout_.home(shard, 0);
  SlotRing& ring = layout_.ring(s.role == Role::activation ? SlotPurpose::device_activation
                                                       : SlotPurpose::device_activation_gradient, bytes);
  if (const Region held = ring.find(what, bytes); held.bytes > 0) return held;
  ensure(layout_.has_home(shard) && kept_.contains(shard));
  Region source = layout_.home(shard, 0);
  if (source.tier == Tier::nvme) source = tile_on_host(what, SlotPurpose::host_activation, Group::step);
  const Region slot = ring.take(what, bytes);
  transfer(what, source, slot, Group::step);
  return slot;
}

Region Emitter::input_on_device(ShardId shard) {
  const TileRef what{shard, -1, Content::value};
  const auto bytes = static_cast<std::uint64_t>(program_.shard(shard).bytes());
  SlotRing& ring = layout_.ring(SlotPurpose::device_input, bytes);
  if (const Region held = ring.find(what, bytes); held.bytes > 0) return held;
  const Region slot = ring.take(what, bytes);
  add(OpKind::feed, Lane::h2d, {{what, slot, Access::produce}});
  return slot;
}

Region Emitter::produced_on_device(ShardId shard) {
  const Shard& s = program_.shard(shard);
  const TileRef what{shard, -1, Content::value};
  const auto bytes = static_cast<std::uint64_t>(s.bytes());
  if (s.role == Role::metric) return metric(shard, Tier::device);
  if (stays_on_device(shard)) return layout_.home(shard, 0);
  const SlotPurpose purpose =
      s.role == Role::activation ? SlotPurpose::device_activation : SlotPurpose::device_activation_gradient;
  return layout_.ring(purpose, bytes).take(what, bytes);
}

bool Emitter::stays_on_device(ShardId shard) const {
  return kept_.contains(shard) && layout_.has_home(shard) && layout_.tier(shard, 0) == Tier::device;
}

void Emitter::settle(const Operand& operand) {
  if (operand.access == Access::accumulate) return add_contribution(operand.what.shard, operand.region);
  switch (program_.shard(operand.what.shard).role) {
    case Role::activation: return keep_activation(operand);
    case Role::metric: return fetch_metric(operand);
    default: return;
  }
}

void Emitter::keep_activation(const Operand& operand) {
  if (!layout_.has_home(operand.what.shard) || !kept_.contains(operand.what.shard)) return;
  const Region home = layout_.home(operand.what.shard, 0);
  if (home.tier == Tier::device) return;
  if (home.tier == Tier::host) return transfer(operand.what, operand.region, home, Group::step);
  const Region staged = tile_slot(operand.what, SlotPurpose::host_activation);
  transfer(operand.what, operand.region, staged, Group::step);
  transfer(operand.what, staged, home, Group::step);
}

void Emitter::fetch_metric(const Operand& operand) {
  transfer(operand.what, operand.region, metric(operand.what.shard, Tier::host), Group::step);
  metrics_.push_back(operand.what.shard);
}

// --- Gradients

bool Emitter::stored_as_contributed(ShardId shard) const {
  return contributions_total_.at(shard) == 1 && program_.shard(shard).dtype == program_.contribution_dtype;
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
    switch (layout_.tier(shard, tile)) {
      case Tier::device: add_tile_on_device(shard, tile, part); break;
      case Tier::host: add_tile_on_host(shard, tile, part); break;
      case Tier::nvme: add_tile_on_nvme(shard, tile, part); break;
    }
    const auto early = update_of_tile_.find({program_.shard(shard).block, tile});
    if (last && early != update_of_tile_.end()) update(program_.segment(early->second));
  }
}

void Emitter::add_tile_on_device(ShardId shard, int tile, const Region& part) {
  const TileRef contributed{shard, tile, Content::contribution}, value{shard, tile, Content::value};
  const Region home = layout_.home(shard, tile);
  const bool first = contributions_seen_[shard] == 1;
  if (stored_as_contributed(shard)) {
    add(OpKind::copy, Lane::comm, {{contributed, part, Access::read}, {value, home, Access::produce}});
  } else {
    add(OpKind::accumulate, Lane::compute,
        {{contributed, part, Access::read}, {value, home, first ? Access::produce : Access::update}})
        .first_contribution = first;
  }
  if (contributions_seen_[shard] == contributions_total_[shard]) finish_gradient_tile(shard, tile, home);
}

void Emitter::add_tile_on_host(ShardId shard, int tile, const Region& part) {
  const TileRef contributed{shard, tile, Content::contribution}, value{shard, tile, Content::value};
  const Region home = layout_.home(shard, tile);
  const bool first = contributions_seen_[shard] == 1;
  if (stored_as_contributed(shard)) {
    add(OpKind::copy, Lane::d2h, {{contributed, part, Access::read}, {value, home, Access::produce}});
  } else {
    const Region staged = tile_slot(contributed, SlotPurpose::host_contribution);
    transfer(contributed, part, staged, Group::step);
    add(OpKind::accumulate, Lane::update,
        {{contributed, staged, Access::read}, {value, home, first ? Access::produce : Access::update}})
        .first_contribution = first;
  }
  if (contributions_seen_[shard] == contributions_total_[shard]) finish_gradient_tile(shard, tile, home);
}

void Emitter::add_tile_on_nvme(ShardId shard, int tile, const Region& part) {
  const TileRef contributed{shard, tile, Content::contribution}, value{shard, tile, Content::value};
  const bool first = contributions_seen_[shard] == 1;
  Region sum;
  if (stored_as_contributed(shard)) {
    sum = tile_slot(value, SlotPurpose::host_gradient);
    add(OpKind::copy, Lane::d2h, {{contributed, part, Access::read}, {value, sum, Access::produce}});
  } else {
    const Region staged = tile_slot(contributed, SlotPurpose::host_contribution);
    transfer(contributed, part, staged, Group::step);
    sum = first ? tile_slot(value, SlotPurpose::host_gradient)
                : tile_on_host(value, SlotPurpose::host_gradient, Group::step);
    add(OpKind::accumulate, Lane::update,
        {{contributed, staged, Access::read}, {value, sum, first ? Access::produce : Access::update}})
        .first_contribution = first;
  }
  if (contributions_seen_[shard] == contributions_total_[shard]) finish_gradient_tile(shard, tile, sum);
  transfer(value, sum, layout_.home(shard, tile), Group::step);
}

void Emitter::finish_gradient_tile(ShardId shard, int tile, const Region& where) {
  const TileRef value{shard, tile, Content::value}, sums{shard, tile, Content::partials};
  const Region on_host = partials(shard, tile, Tier::host);
  if (where.tier == Tier::host) {
    add(OpKind::square, Lane::update, {{value, where, Access::read}, {sums, on_host, Access::produce}});
    return;
  }
  const Region on_device = partials(shard, tile, Tier::device);
  add(OpKind::square, Lane::compute, {{value, where, Access::read}, {sums, on_device, Access::produce}});
  transfer(sums, on_device, on_host, Group::step);
}

// --- Optimizer

void Emitter::norm(const Segment& s) {
  std::vector<Operand> operands;
  for (const Use& use : s.uses)
    for (int tile = 0; tile < program_.num_tiles(use.shard); ++tile)
      operands.push_back({{use.shard, tile, Content::partials}, partials(use.shard, tile, Tier::host), Access::read});
  operands.push_back({{{}, -1, Content::scalars}, scalars(Tier::host), Access::produce});
  add(OpKind::norm, Lane::update, std::move(operands));
  report();
}

Tier Emitter::update_engine(const Segment& s) const {
  const bool resident = std::ranges::all_of(s.uses, [&](const Use& use) {
    return use.access != Access::update || layout_.tier(use.shard, use.tile) == Tier::device;
  });
  return resident ? Tier::device : Tier::host;
}

// Uses of an update segment, in order: gradient (read), master, moment1, moment2 (update), weight (produce).
void Emitter::update(const Segment& s) {
  const SegmentId outer = std::exchange(current_, s.id);
  const Tier engine = update_engine(s);
  std::vector<Operand> operands;
  for (const Use& use : s.uses) {
    switch (use.access) {
      case Access::read: operands.push_back(gradient_operand(use, engine)); break;
      case Access::update: operands.push_back(state_operand(use, engine)); break;
      default: operands.push_back(weight_operand(use, engine)); break;
    }
  }
  operands.push_back(update_gate(s, engine));
  add(OpKind::update, engine == Tier::device ? Lane::compute : Lane::update, operands);
  for (const Operand& operand : operands)
    if (operand.access != Access::read) send_home(operand);
  current_ = outer;
}

Operand Emitter::gradient_operand(const Use& use, Tier engine) {
  const TileRef what{use.shard, use.tile, Content::value};
  const Region home = layout_.home(use.shard, use.tile);
  if (home.tier == engine) return {what, home, Access::read};
  const Region on_host = home.tier == Tier::host ? home : tile_on_host(what, SlotPurpose::host_gradient, Group::state);
  if (engine == Tier::host) return {what, on_host, Access::read};
  const Region slot = tile_slot(what, SlotPurpose::device_gradient_tile);
  transfer(what, on_host, slot, Group::state);
  return {what, slot, Access::read};
}

Operand Emitter::state_operand(const Use& use, Tier engine) {
  const TileRef what{use.shard, use.tile, Content::value};
  const Region home = layout_.home(use.shard, use.tile);
  if (home.tier == engine) return {what, home, Access::update};
  return {what, tile_on_host(what, staging_purpose(program_.shard(use.shard).role), Group::state), Access::update};
}

Operand Emitter::weight_operand(const Use& use, Tier engine) {
  const TileRef what{use.shard, use.tile, Content::value};
  layout_.forget(use.shard);
  const Region home = layout_.home(use.shard, use.tile);
  if (home.tier == engine) return {what, home, Access::produce};
  const SlotPurpose purpose = engine == Tier::device ? SlotPurpose::device_weight_tile : SlotPurpose::host_new_weight;
  return {what, tile_slot(what, purpose), Access::produce};
}

// What holds the update back: the global scalars, or (during backward) the tile's own sums of squares.
Operand Emitter::update_gate(const Segment& s, Tier engine) {
  if (policy_.update_order == UpdateOrder::during_backward) {
    const Use& gradient = s.uses.front();
    return {{gradient.shard, gradient.tile, Content::partials},
            partials(gradient.shard, gradient.tile, Tier::host), Access::read};
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
    const Region staged = tile_slot(operand.what, staging_purpose(program_.shard(operand.what.shard).role));
    transfer(operand.what, source, staged, Group::state);
    source = staged;
  }
  transfer(operand.what, source, home, Group::state);
}

void Emitter::report() {
  std::vector<Operand> operands;
  for (ShardId shard : metrics_)
    operands.push_back({{shard, -1, Content::value}, metric(shard, Tier::host), Access::read});
  if (has_norm_) operands.push_back({{{}, -1, Content::scalars}, scalars(Tier::host), Access::read});
  add(OpKind::report, Lane::update, std::move(operands));
}

// --- Movement

// A slot for one tile; its content will be written whole.
Region Emitter::tile_slot(TileRef what, SlotPurpose purpose) {
  const Shard& shard = program_.shard(what.shard);
  const DType dtype = what.content == Content::contribution ? program_.contribution_dtype : shard.dtype;
  const auto bytes = what.tile < 0 ? static_cast<std::uint64_t>(shard.bytes())
                                   : static_cast<std::uint64_t>(program_.tile_count(what.shard, what.tile) * dtype_bytes(dtype));
  return layout_.ring(purpose, what.tile < 0 ? bytes : slot_bytes(what.shard, dtype)).take(what, bytes).part(0, bytes);
}

// The tile's value in host memory: where staging still holds it, or fetched from its home on the device or NVMe.
Region Emitter::tile_on_host(TileRef what, SlotPurpose purpose, Group group) {
  const int tile = std::max(what.tile, 0);
  const Region home = layout_.home(what.shard, tile);
  const std::uint64_t ring_bytes =
      what.tile < 0 ? home.bytes : slot_bytes(what.shard, program_.shard(what.shard).dtype);
  if (const Region held = layout_.ring(purpose, ring_bytes).find(what, home.bytes); held.bytes > 0) return held;
  const Region slot = tile_slot(what, purpose);
  transfer(what, home, slot, group);
  return slot;
}

// Slots serve tiles of all shards of a role: as large as the largest tile.
std::uint64_t Emitter::slot_bytes(ShardId shard, DType dtype) const {
  std::int64_t most = 0;
  for (const Shard& other : program_.shards)
    if (other.role == program_.shard(shard).role) most = std::max(most, other.count);
  return static_cast<std::uint64_t>(std::min(most, program_.tile_elements) * dtype_bytes(dtype));
}

std::pair<OpKind, Lane> Emitter::route(const Region& source, const Region& target, Group group) {
  const bool state = group == Group::state;
  if (source.tier == Tier::nvme) return {OpKind::read, state ? Lane::state_read : Lane::read};
  if (target.tier == Tier::nvme) return {OpKind::write, state ? Lane::state_write : Lane::write};
  if (source.tier == target.tier) return {OpKind::copy, Lane::comm};
  if (target.tier == Tier::device) return {OpKind::copy, state ? Lane::state_h2d : Lane::h2d};
  return {OpKind::copy, state ? Lane::state_d2h : Lane::d2h};
}

void Emitter::transfer(const TileRef& what, const Region& source, const Region& target, Group group) {
  const auto [kind, lane] = route(source, target, group);
  add(kind, lane, {{what, source, Access::read}, {what, target, Access::produce}});
}

Region Emitter::partials(ShardId shard, int tile, Tier tier) {
  const std::int64_t chunks = ceil_div(program_.shard(shard).count, norm_chunk_elements);
  const std::string name = "norm partials/" + std::to_string(shard.value) + std::string(tier_name(tier));
  const Region all = layout_.fixed(name, tier, static_cast<std::uint64_t>(chunks) * sizeof(double));
  const std::int64_t first = program_.tile_begin(shard, tile) / norm_chunk_elements;
  const std::int64_t count = ceil_div(program_.tile_count(shard, tile), norm_chunk_elements);
  return all.part(static_cast<std::uint64_t>(first) * sizeof(double), static_cast<std::uint64_t>(count) * sizeof(double));
}

Region Emitter::scalars(Tier tier) {
  return layout_.fixed("scalars/" + std::string(tier_name(tier)), tier, sizeof(UpdateScalars));
}

Region Emitter::metric(ShardId shard, Tier tier) {
  const std::string name = "metrics/" + std::to_string(shard.value) + std::string(tier_name(tier));
  return layout_.fixed(name, tier, static_cast<std::uint64_t>(program_.shard(shard).bytes()));
}

}  // namespace strata
