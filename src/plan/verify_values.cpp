#include "plan/verify_values.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "plan/saved_state.hpp"
#include "strata/core/bytes.hpp"

namespace strata {
ValueReplay::ValueReplay(const Program& program, const Plan& plan, const Schedule& schedule,
                         std::vector<Violation>& found)
    : program_(program),
      plan_(plan),
      schedule_(schedule),
      sequence_(*sequence_of(program, schedule)),
      found_(found) {}

void ValueReplay::run(int steps) {
  begin();
  for (int step = 0; step < steps; ++step) {
    begin_step();
    for (const Op& op : schedule_.ops) replay(op);
    end_step();
  }
}

void ValueReplay::begin() {
  for (SegmentId id : sequence_.segments) {
    if (is_model_segment(program_.segment(id).kind)) model_segments_.push_back(id);
    norms_expected_ += program_.segment(id).kind == SegmentKind::norm;
    for (const Use& use : program_.segment(id).uses)
      contributions_[use.shard] += use.access == Access::accumulate;
  }
  for (const Shard& shard : program_.shards)
    truths_.emplace_back(static_cast<std::size_t>(program_.slice_tiles(shard.id)) *
                         static_cast<std::size_t>(program_.num_slices(shard.id)));
  for (const Shard& shard : program_.shards) {
    if (!outlives_steps(shard.role)) continue;
    for (int tile = 0; tile < program_.num_tiles(shard.id); ++tile) {
      const TileRef what{shard.id, tile, Content::value};
      const Region& home = plan_.homes[shard.id.index()][static_cast<std::size_t>(tile)];
      put(placed(what), home, truth(placed(what)).value);
    }
  }
}

void ValueReplay::begin_step() {
  next_segment_ = 0;
  norms_ = reports_ = commits_ = 0;
  for (auto& places : truths_)
    for (Truth& t : places) {
      t.contributions_added = 0;
      t.updated = false;
      t.at_begin = t.value;
      t.saved = 0;
    }
}

void ValueReplay::end_step() {
  if (next_segment_ != model_segments_.size())
    complain(fmt::format("schedule '{}' runs {} of {} segments", schedule_.name, next_segment_,
                         model_segments_.size()));
  if (norms_ != norms_expected_ || reports_ != 1)
    complain(fmt::format("schedule '{}' makes {} norms, {} expected, and {} reports",
                         schedule_.name, norms_, norms_expected_, reports_));
  for (const Shard& shard : program_.shards) {
    if (!outlives_steps(shard.role)) continue;
    for (int tile = 0; tile < static_cast<int>(plan_.homes[shard.id.index()].size()); ++tile) {
      const Region& home = plan_.homes[shard.id.index()][static_cast<std::size_t>(tile)];
      const TileRef what = placed({shard.id, tile, Content::value});
      bool right = true;
      held_.for_each(home, [&](Held& held) {
        right &=
            held.what == what && held.version == truth(what).value && held.begin == home.offset;
      });
      if (!right)
        complain(fmt::format("after a step the home of {} is out of date", describe(what)));
    }
  }
  for (SegmentId id : sequence_.segments) {
    const Segment& s = program_.segment(id);
    if (s.kind != SegmentKind::update) continue;
    const Use& gradient = updated_gradient(s);
    if (!truth(placed({gradient.shard, gradient.tile})).updated)
      complain(fmt::format("segment '{}' never runs", s.name));
  }
  check_saves();
}

// A kernel may write before it has read all. Collectives may have their slice in the whole.
void ValueReplay::check_apart(const Op& op) {
  if (op.kind == OpKind::gather || op.kind == OpKind::reduce) return;
  for (std::size_t i = 0; i < op.operands.size(); ++i) {
    if (op.operands[i].access == Access::read) continue;
    for (std::size_t j = 0; j < op.operands.size(); ++j)
      if (i != j && op.operands[i].region.overlaps(op.operands[j].region))
        complain(op, fmt::format("operands {} and {} overlap", i, j));
  }
}

void ValueReplay::replay(const Op& op) {
  check_apart(op);
  switch (op.kind) {
    case OpKind::copy:
    case OpKind::read:
    case OpKind::write:
      return move(op);
    case OpKind::feed:
      return feed(op);
    case OpKind::run:
      return segment(op);
    case OpKind::accumulate:
      return accumulate(op);
    case OpKind::square:
      return square(op);
    case OpKind::norm:
      return norm(op);
    case OpKind::update:
      return update(op);
    case OpKind::gather:
      return gather(op);
    case OpKind::reduce:
      return reduce(op);
    case OpKind::report:
      return report(op);
    case OpKind::sum:
      return sum(op);
    case OpKind::save:
      return save(op);
    case OpKind::commit:
      return commit(op);
  }
}

ValueReplay::Version ValueReplay::current(const TileRef& what) {
  const bool is_of_shard =
      what.content <= Content::partials || what.content == Content::rank_contribution;
  if (is_of_shard && !what.shard.valid()) return -1;
  switch (what.content) {
    case Content::value:
      return truth(what).value;
    case Content::contribution:
      return truth(what).contributions.empty() ? -1 : truth(what).contributions.front();
    case Content::partials:
      return truth(what).squared;
    case Content::scalars:
      return scalars_;
    case Content::rank_contribution:
      return truth(what).rank_contribution;
    case Content::rank_sums:
      return what.tile == whole_shard ? rank_sums_ : own_sum_;
    case Content::rank_metrics:
      return rank_metrics_;
    case Content::scratch:
      break;
  }
  return -1;
}

ValueReplay::Version ValueReplay::newest(const TileRef& what) {
  if (what.content != Content::contribution) return current(what);
  const std::vector<Version>& pending = truth(what).contributions;
  return pending.empty() ? -1 : pending.back();
}

void ValueReplay::put(const TileRef& what, const Region& region, Version version) {
  held_.assign(region, Held{what, version, region.offset});
}

void ValueReplay::expect(const Op& op, const TileRef& what, const Region& region, Version version) {
  std::string wrong;
  held_.for_each(region, [&](Held& held) {
    const bool is_current = held.what == what && held.version == version && version >= 0;
    if (is_current && held.begin == region.offset) return;
    wrong = held.version < 0 ? "nothing"
                             : fmt::format("{}{} version {}", is_current ? "a part of " : "",
                                           describe(held.what), held.version);
  });
  if (!wrong.empty())
    complain(op, fmt::format("expects {} version {}, finds {}", describe(what), version, wrong));
}

void ValueReplay::expect_current(const Op& op, const Operand& operand) {
  for_each_tile(operand, [&](const TileRef& what, const Region& region) {
    expect(op, what, region, current(what));
  });
}

void ValueReplay::move(const Op& op) {
  const Operand &source = op.operands[0], &target = op.operands[1];
  // A stored gradient may be the contribution itself, moved.
  const bool becomes_value =
      source.what.content == Content::contribution && target.what.content == Content::value;
  const bool is_same = source.what.shard == target.what.shard &&
                       source.what.tile == target.what.tile &&
                       (becomes_value || source.what.content == target.what.content);
  if (!is_same) return complain(op, "moves one thing and calls it another");
  expect_current(op, source);
  if (becomes_value) store_contribution(op, truth(placed(source.what)));
  if (op.kind == OpKind::read) overwrite_padding(target.region);
  for_each_tile(
      target, [&](const TileRef& what, const Region& region) { put(what, region, current(what)); });
}

// Direct I/O brings whole pages.
void ValueReplay::overwrite_padding(const Region& region) {
  const std::uint64_t page = std::max<std::uint64_t>(plan_.limits.io_alignment, 1);
  const std::uint64_t padding = align_up(region.bytes, page) - region.bytes;
  if (padding > 0) held_.assign(region.part(region.bytes, padding), Held{});
}

void ValueReplay::store_contribution(const Op& op, Truth& t) {
  if (program_.shard(op.operands[1].what.shard).dtype != program_.contribution_dtype)
    complain(op, "moves a contribution to a gradient of another type");
  if (t.contributions_added > 0) complain(op, "puts a contribution where it should add it");
  add_contribution(op, t);
}

void ValueReplay::add_contribution(const Op& op, Truth& t) {
  if (t.contributions.empty())
    complain(op, "adds a contribution twice");
  else
    t.contributions.erase(t.contributions.begin());
  ++t.contributions_added;
  t.value = next_version_++;
}

void ValueReplay::feed(const Op& op) {
  const Operand& target = op.operands[0];
  truth(target.what.shard, 0).value = next_version_++;
  for_each_tile(
      target, [&](const TileRef& what, const Region& region) { put(what, region, current(what)); });
}

void ValueReplay::segment(const Op& op) {
  if (next_segment_ >= model_segments_.size() || model_segments_[next_segment_] != op.segment)
    return complain(op, "is out of the Program's order");
  ++next_segment_;
  const Segment& s = program_.segment(op.segment);
  for (std::size_t i = 0; i < s.uses.size(); ++i) segment_use(op, s.uses[i], op.operands[i]);
  if (s.scratch_bytes == 0) return;
  const Operand& scratch = op.operands.back();
  if (scratch.what != TileRef{{}, whole_shard, Content::scratch})
    return complain(op, fmt::format("takes {} for scratch", describe(scratch.what)));
  put(scratch.what, scratch.region, -1);  // whatever was there is no more
}

void ValueReplay::segment_use(const Op& op, const Use& use, const Operand& operand) {
  if (operand.what != expected_of(use))
    return complain(op, fmt::format("binds {} where the segment uses '{}'", describe(operand.what),
                                    program_.shard(use.shard).name));
  if (use.access == Access::read) return expect_current(op, operand);
  for_each_tile(operand, [&](const TileRef& what, const Region& region) {
    if (use.access == Access::accumulate)
      contribute(op, what);
    else
      truth(what).value = next_version_++;
    put(what, region, newest(what));
  });
}

void ValueReplay::contribute(const Op& op, const TileRef& what) {
  Truth& t = truth(what);
  const bool is_of_rank = what.content == Content::rank_contribution;
  if (is_of_rank ? t.ranks_pending : !t.contributions.empty())
    complain(op, fmt::format("overwrites an unsummed contribution of {}", describe(what)));
  if (!is_of_rank) return t.contributions.push_back(next_version_++);
  t.rank_contribution = next_version_++;
  t.ranks_pending = true;
}

void ValueReplay::accumulate(const Op& op) {
  const Operand &source = op.operands[0], &target = op.operands[1];
  Truth& t = truth(placed(target.what));
  expect_current(op, source);
  if (source.what != TileRef{target.what.shard, target.what.tile, Content::contribution})
    complain(op, fmt::format("adds {} to {}", describe(source.what), describe(target.what)));
  if (op.first_contribution != (t.contributions_added == 0))
    complain(op, "assigns where it should add, or adds where it should assign");
  if (!op.first_contribution) expect_current(op, target);
  add_contribution(op, t);
  put(placed(target.what), target.region, t.value);
}

int ValueReplay::contributions_expected(ShardId shard) const {
  const auto found = contributions_.find(shard);
  return found == contributions_.end() ? 0 : found->second;
}

void ValueReplay::square(const Op& op) {
  const Operand &gradient = op.operands[0], &sums = op.operands[1];
  Truth& t = truth(placed(gradient.what));
  expect_current(op, gradient);
  if (t.contributions_added != contributions_expected(gradient.what.shard))
    complain(op, fmt::format("sums a gradient of {} contributions, {} expected",
                             t.contributions_added, contributions_expected(gradient.what.shard)));
  t.squared = t.value;
  put(placed(sums.what), sums.region, t.squared);
}

void ValueReplay::norm(const Op& op) {
  ++norms_;
  if (program_.world == 1) {
    check_partials(op);
  } else {
    const Operand& sums = op.operands.front();
    if (op.operands.size() != 2 || sums.what != TileRef{{}, whole_shard, Content::rank_sums})
      return complain(op, "is not made of the ranks' sums");
    expect_current(op, sums);
  }
  scalars_ = next_version_++;
  put(op.operands.back().what, op.operands.back().region, scalars_);
}

void ValueReplay::update(const Op& op) {
  const Segment& s = program_.segment(op.segment);
  for (std::size_t i = 0; i < s.uses.size(); ++i) {
    const Operand& operand = op.operands[i];
    if (operand.what != TileRef{s.uses[i].shard, s.uses[i].tile, Content::value})
      return complain(op, fmt::format("binds {} as operand {}", describe(operand.what), i));
    update_use(op, s.uses[i], operand);
  }
  const Use& gradient = updated_gradient(s);
  update_gate(op, gradient);
  Truth& tile = truth(placed({gradient.shard, gradient.tile}));
  if (tile.updated) complain(op, "updates a tile twice in a step");
  tile.updated = true;
  if (tile.contributions_added != contributions_expected(gradient.shard))
    complain(op, "uses an incomplete gradient");
  for (std::size_t i = 0; i < s.uses.size(); ++i) {
    if (s.uses[i].access == Access::read) continue;
    advance(s, s.uses[i]);
    const TileRef what = placed(op.operands[i].what);
    put(what, op.operands[i].region, truth(what).value);
  }
}

void ValueReplay::update_use(const Op& op, const Use& use, const Operand& operand) {
  const Tier engine = op.lane == Lane::compute ? Tier::device : Tier::host;
  if (operand.region.tier != engine)
    complain(op, fmt::format("{} is out of the engine's reach", describe(operand.what)));
  if (use.access != Access::produce) expect_current(op, operand);
}

const Use& ValueReplay::updated_gradient(const Segment& update) const {
  return *program_.use_of(update, Role::gradient);
}

void ValueReplay::update_gate(const Op& op, const Use& gradient) {
  const Operand& gate = op.operands.back();
  // The executor reads partials itself, in host memory; scalars go to the engine.
  const bool with_engine = gate.what.content == Content::scalars && op.lane == Lane::compute;
  if (gate.region.tier != (with_engine ? Tier::device : Tier::host))
    complain(op, "is held back by what is out of reach");
  const bool is_early = plan_.policy.update_order == UpdateOrder::during_backward;
  if (gate.what.content != (is_early ? Content::partials : Content::scalars))
    return complain(op, is_early ? "waits for the norm, though it was to come during backward"
                                 : "is not held back by the norm");
  if (!is_early) return expect(op, gate.what, gate.region, scalars_);
  if (norms_ > 0) complain(op, "comes after the norm, though it was to come during backward");
  const TileRef what = placed({gradient.shard, gradient.tile, Content::partials});
  if (placed(gate.what) != what) return complain(op, "is held back by another tile");
  expect(op, what, gate.region, truth(what).value);
}

// Losses in the order of their segments, then the norm's scalars.
void ValueReplay::report(const Op& op) {
  ++reports_;
  const std::vector<TileRef> right = program_.world == 1 ? reported() : reported_of_ranks();
  if (!std::ranges::equal(op.operands, right, {}, &Operand::what))
    return complain(op, "leaves out a loss or the norm, or tells something else");
  for (const Operand& operand : op.operands) expect_current(op, operand);
}

std::vector<TileRef> ValueReplay::reported() const {
  std::vector<TileRef> right;
  for (SegmentId id : model_segments_)
    for (const Use& use : program_.segment(id).uses)
      if (program_.shard(use.shard).role == Role::metric)
        right.push_back({use.shard, whole_shard, Content::value});
  if (norms_expected_ > 0) right.push_back({{}, whole_shard, Content::scalars});
  return right;
}

std::string ValueReplay::describe(const TileRef& what) const {
  if (what.content == Content::scalars) return "the norm's scalars";
  if (what.content == Content::scratch) return "scratch";
  if (what.content == Content::rank_sums) return "the ranks' sums";
  if (what.content == Content::rank_metrics) return "the ranks' metrics";
  if (!what.shard.valid()) return "nothing";
  const std::string& name = program_.shard(what.shard).name;
  const char* kind = what.content == Content::contribution        ? "a contribution to "
                     : what.content == Content::rank_contribution ? "one rank's contribution to "
                     : what.content == Content::partials          ? "partial sums of "
                                                                  : "";
  return what.tile < 0 ? fmt::format("{}'{}'", kind, name)
                       : fmt::format("{}'{}' tile {}", kind, name, what.tile);
}

void ValueReplay::complain(const Op& op, const std::string& why) {
  complain(fmt::format("op {} ({} on {}, segment '{}') {}", op.id.value, op_kind_name(op.kind),
                       lane_name(op.lane),
                       op.segment.valid() ? program_.segment(op.segment).name : "", why));
}

void ValueReplay::complain(const std::string& why) {
  if (found_.size() < 20) found_.push_back({why});
}

}  // namespace strata
