// What several ranks exchange: weights, contributions, the norm's sums and the metrics.

#include <algorithm>
#include <ranges>
#include <utility>

#include "plan/emitter.hpp"

namespace strata {

TileRef Emitter::whole_of(ShardId shard, Content content) const {
  const bool is_sliced = program_.shard(shard).sharing == Sharing::sliced;
  return {shard, is_sliced ? all_slices : whole_shard, content};
}

TileRef Emitter::slice_of(ShardId shard, Content content) const {
  const bool is_sliced = program_.shard(shard).sharing == Sharing::sliced;
  return {shard, is_sliced ? whole_shard : own_slice, content};
}

Region Emitter::own_part(const Region& whole) const {
  const std::uint64_t bytes = whole.bytes / static_cast<std::uint64_t>(program_.world);
  return whole.part(bytes * static_cast<std::uint64_t>(program_.rank), bytes);
}

void Emitter::gather(TileRef slice, const Region& from, TileRef whole, const Region& to) {
  add(OpKind::gather, Lane::comm, {{slice, from, Access::read}, {whole, to, Access::produce}});
}

// Each rank brings its slice over its own link.
void Emitter::gather_weight(ShardId shard, const Region& whole) {
  const bool at_home = layout_.all_on(shard, Tier::device);
  const Region slice = at_home ? layout_.whole_home(shard) : own_part(whole);
  if (!at_home) fetch_tiles(shard, slice);
  gather(slice_of(shard), slice, whole_of(shard), whole);
}

// Of the segment before, once the next one's weights are on their way: on the comm lane they would
// otherwise wait for that segment's end.
void Emitter::sum_pending_contributions() {
  const SegmentId outer = current_;
  for (const auto& [operand, segment] : std::exchange(pending_contributions_, {})) {
    current_ = segment;
    const ShardId shard = operand.what.shard;
    const Region sum = sum_over_ranks(shard, operand.region);
    if (adds_on_device(shard))
      summed_contributions_.push_back({shard, sum, segment});
    else
      add_contribution(shard, sum);
  }
  current_ = outer;
}

bool Emitter::adds_on_device(ShardId gradient) const {
  for (int tile = 0; tile < program_.num_tiles(gradient); ++tile)
    if (layout_.tier(gradient, tile) == Tier::device) return true;
  return false;
}

// Where the accelerator adds, it does so when the slot is wanted again, no sooner: the segments
// after it would wait for the collective.
void Emitter::add_contributions_in(const Region& slot) {
  const auto last =
      std::ranges::find_if(summed_contributions_ | std::views::reverse,
                           [&](const auto& summed) { return summed.where.overlaps(slot); });
  add_contributions(static_cast<std::size_t>(summed_contributions_.rend() - last));
}

// Those whose slots the next segment writes to.
void Emitter::add_contributions_in_use() {
  for (const Region& region : in_use_) add_contributions_in(region);
}

// The first `count`: those to one gradient keep their order.
void Emitter::add_contributions(std::size_t count) {
  const SegmentId outer = current_;
  for (; count > 0; --count) {
    const SummedContribution summed = summed_contributions_.front();
    summed_contributions_.pop_front();
    current_ = summed.segment;
    add_contribution(summed.shard, summed.where);
  }
  current_ = outer;
}

void Emitter::add_all_contributions() {
  sum_pending_contributions();
  add_contributions(summed_contributions_.size());
}

// Leaves what this rank adds to its gradient: its slice of the sum, or, where gradients are
// replicated, all of it. All-reduce is made of the same reduce-scatter, so that all stages have the
// same bits.
Region Emitter::sum_over_ranks(ShardId shard, const Region& whole) {
  const TileRef summed = slice_of(shard, Content::contribution);
  const bool is_sliced = program_.shard(shard).sharing == Sharing::sliced;
  Region slice = own_part(whole);
  if (is_sliced) {
    slice = layout_.ring(SlotPurpose::device_reduced, slice.bytes).take(summed, slice.bytes);
    add_contributions_in(slice);
  }
  add(OpKind::reduce, Lane::comm,
      {{whole_of(shard, Content::rank_contribution), whole, Access::read},
       {summed, slice, Access::produce}});
  if (is_sliced) return slice;
  gather(summed, slice, whole_of(shard, Content::contribution), whole);
  return whole;
}

// --- Weights that each rank holds whole and updates in part

void Emitter::count_update_of_whole(const Segment& update) {
  const Shard& weight = program_.shard(program_.use_of(update, Role::weight)->shard);
  const Shard& master = program_.shard(program_.use_of(update, Role::master)->shard);
  if (master.sharing == Sharing::sliced && weight.sharing == Sharing::replicated)
    ++updates_left_[weight.id];
}

void Emitter::count_down_to_sharing(const Segment& update) {
  const auto left = updates_left_.find(program_.use_of(update, Role::weight)->shard);
  if (left == updates_left_.end() || --left->second > 0) return;
  weights_to_share_.push_back(left->first);
  if (policy_.update_order != UpdateOrder::during_backward) share_new_weights();
}

// After the backward that they were updated in: contributions of other blocks would wait for the
// update on the comm lane.
void Emitter::share_new_weights() {
  for (ShardId shard : std::exchange(weights_to_share_, {})) share_new_weight(shard);
}

void Emitter::share_new_weight(ShardId shard) {
  const bool at_home = layout_.all_on(shard, Tier::device);
  const Region whole = at_home ? layout_.whole_home(shard) : new_weight_on_device(shard);
  gather(slice_of(shard), own_part(whole), whole_of(shard), whole);
  if (!at_home) send_others_home(shard, whole);
}

// A slot of the updates' own with this rank's part in place.
Region Emitter::new_weight_on_device(ShardId shard) {
  const auto bytes = static_cast<std::uint64_t>(program_.shard(shard).bytes());
  const Region whole =
      layout_.ring(SlotPurpose::device_new_weight, bytes).take(whole_of(shard), bytes);
  for (int tile = 0; tile < program_.num_tiles(shard); ++tile) {
    if (!program_.is_own(shard, tile)) continue;
    const TileRef what{shard, tile, Content::value};
    Region source = layout_.home(shard, tile);
    if (source.tier == Tier::nvme)
      source = tile_on_host(what, SlotPurpose::host_new_weight, Group::state);
    transfer(what, source, tile_part(shard, tile, whole), Group::state);
  }
  return whole;
}

void Emitter::send_others_home(ShardId shard, const Region& whole) {
  for (int tile = 0; tile < program_.num_tiles(shard); ++tile)
    if (!program_.is_own(shard, tile))
      send_home({{shard, tile, Content::value}, tile_part(shard, tile, whole), Access::produce});
}

// Of a value whose tiles lie side by side in `all`.
Region Emitter::tile_part(ShardId shard, int tile, const Region& all) const {
  const std::int64_t width = dtype_bytes(program_.shard(shard).dtype);
  return all.part(static_cast<std::uint64_t>(program_.tile_begin(shard, tile) * width),
                  static_cast<std::uint64_t>(program_.tile_count(shard, tile) * width));
}

// --- Small things

// The norm's order: each rank's partials by block and element, then the ranks' sums by rank.
void Emitter::sum_partials(std::vector<Operand> partials) {
  const TileRef own{{}, program_.rank, Content::rank_sums};
  const Region all = rank_sums();
  partials.push_back({own, own_part(all), Access::produce});
  add(OpKind::sum, Lane::update, std::move(partials));
  gather(own, own_part(all), {{}, whole_shard, Content::rank_sums}, all);
}

// Once a step: a gather for each loss would make the comm lane wait for it.
void Emitter::report_ranks(std::vector<Operand>& operands) {
  const TileRef all{{}, whole_shard, Content::rank_metrics};
  operands.clear();
  if (metrics_.empty()) return;
  gather({{}, program_.rank, Content::rank_metrics}, own_part(rank_metrics()), all, rank_metrics());
  operands.push_back({all, rank_metrics(), Access::read});
}

void Emitter::place_metrics(const Segment& segment) {
  for (const Use& use : segment.uses) {
    const Shard& shard = program_.shard(use.shard);
    if (shard.role != Role::metric || !metric_offset_.emplace(use.shard, metric_row_bytes_).second)
      continue;
    metric_row_bytes_ += static_cast<std::uint64_t>(shard.bytes());
  }
}

Region Emitter::rank_metrics() {
  return layout_.fixed("metrics/" + sequence_.name, Tier::host,
                       metric_row_bytes_ * static_cast<std::uint64_t>(program_.world));
}

Region Emitter::rank_sums() {
  return layout_.fixed("norm sums", Tier::host,
                       sizeof(double) * static_cast<std::uint64_t>(program_.world));
}

}  // namespace strata
