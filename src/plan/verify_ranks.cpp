// What the checker demands of several ranks. Collectives are right if they are right on this rank:
// the others issue the same ops on slices of the same state.

#include <fmt/format.h>

#include <algorithm>

#include "plan/verify_values.hpp"

namespace strata {

ValueReplay::Places ValueReplay::places_of(const TileRef& what) const {
  const int tiles = program_.slice_tiles(what.shard);
  if (is_whole(what)) return {0, tiles * program_.num_slices(what.shard)};
  return {program_.rank * tiles, (program_.rank + 1) * tiles};
}

bool ValueReplay::is_whole(const TileRef& what) const {
  const bool is_sliced = program_.shard(what.shard).sharing == Sharing::sliced;
  return what.tile == (is_sliced ? all_slices : whole_shard);
}

bool ValueReplay::is_slice(const TileRef& what) const {
  const bool is_sliced = program_.shard(what.shard).sharing == Sharing::sliced;
  return what.tile == (is_sliced ? whole_shard : own_slice);
}

std::int64_t ValueReplay::width_of(const TileRef& what) const {
  const bool contributed =
      what.content == Content::contribution || what.content == Content::rank_contribution;
  return dtype_bytes(contributed ? program_.contribution_dtype : program_.shard(what.shard).dtype);
}

// What a model's segment must be given.
TileRef ValueReplay::expected_of(const Use& use) const {
  const bool is_sliced = program_.shard(use.shard).sharing == Sharing::sliced;
  const Content contributed =
      program_.world == 1 ? Content::contribution : Content::rank_contribution;
  return {use.shard, is_sliced ? all_slices : whole_shard,
          use.access == Access::accumulate ? contributed : Content::value};
}

// Where ranks update by slices, the same tile of every rank's slice becomes new at once.
void ValueReplay::advance(const Segment& update, const Use& use) {
  const Version version = next_version_++;
  const int place = program_.place(use.shard, use.tile);
  if (program_.shard(program_.use_of(update, Role::master)->shard).sharing == Sharing::replicated) {
    truth(use.shard, place).value = version;
    return;
  }
  const int tiles = program_.slice_tiles(use.shard);
  for (int rank = 0; rank < program_.world; ++rank)
    truth(use.shard, rank * tiles + place % tiles).value = version;
}

void ValueReplay::check_collective(const Op& op, const Operand& slice, const Operand& whole,
                                   Tier tier) {
  const auto world = static_cast<std::uint64_t>(program_.world);
  const auto rank = static_cast<std::uint64_t>(program_.rank);
  const Region own = whole.region.part(whole.region.bytes / world * rank, slice.region.bytes);
  if (program_.world == 1) complain(op, "is a collective, in a plan for one rank");
  if (op.lane != Lane::comm) complain(op, "is a collective on another lane than comm");
  if (slice.region.tier != tier || whole.region.tier != tier)
    complain(op, "is a collective of what is out of reach");
  if (slice.region.bytes * world != whole.region.bytes)
    complain(op, fmt::format("has a slice of {} bytes, a whole of {}", slice.region.bytes,
                             whole.region.bytes));
  if (slice.region.overlaps(whole.region) && slice.region.offset != own.offset)
    complain(op, "has its slice in another rank's part of the whole");
}

void ValueReplay::check_extent(const Op& op, const TileRef& slice, const TileRef& whole) {
  if (!slice.shard.valid() || slice.shard != whole.shard || !is_slice(slice) || !is_whole(whole))
    complain(op, fmt::format("takes {} for a slice of {}", describe(slice), describe(whole)));
}

void ValueReplay::gather(const Op& op) {
  const Operand &slice = op.operands[0], &whole = op.operands[1];
  if (slice.what.content == Content::rank_sums) return gather_sums(op);
  if (slice.what.content == Content::rank_metrics) return gather_metrics(op);
  check_collective(op, slice, whole, Tier::device);
  const std::size_t before = found_.size();
  check_extent(op, slice.what, whole.what);
  if (slice.what.content != whole.what.content) complain(op, "gathers one thing as another");
  if (found_.size() > before) return;
  for_each_tile(slice, [&](const TileRef& what, const Region& region) {
    expect(op, what, region, newest(what));
  });
  for_each_tile(
      whole, [&](const TileRef& what, const Region& region) { put(what, region, newest(what)); });
}

void ValueReplay::gather_sums(const Op& op) {
  const Operand &own = op.operands[0], &all = op.operands[1];
  check_collective(op, own, all, Tier::host);
  if (own.what.tile != program_.rank || all.what != TileRef{{}, whole_shard, Content::rank_sums})
    complain(op, "gathers other than this rank's sum");
  expect_current(op, own);
  rank_sums_ = next_version_++;
  put(all.what, all.region, rank_sums_);
}

// This rank's row holds each metric in the order of its sequence.
void ValueReplay::gather_metrics(const Op& op) {
  const Operand &row = op.operands[0], &all = op.operands[1];
  check_collective(op, row, all, Tier::host);
  std::uint64_t at = 0;
  for (SegmentId id : model_segments_)
    for (const Use& use : program_.segment(id).uses) {
      if (program_.shard(use.shard).role != Role::metric) continue;
      const auto bytes = static_cast<std::uint64_t>(program_.shard(use.shard).bytes());
      expect(op, {use.shard, 0, Content::value}, row.region.part(at, bytes),
             truth(use.shard, 0).value);
      at += bytes;
    }
  if (row.what.tile != program_.rank || row.region.bytes != at)
    complain(op, "gathers other than this rank's metrics");
  rank_metrics_ = next_version_++;
  put(all.what, all.region, rank_metrics_);
}

void ValueReplay::reduce(const Op& op) {
  const Operand &whole = op.operands[0], &slice = op.operands[1];
  check_collective(op, slice, whole, Tier::device);
  const std::size_t before = found_.size();
  check_extent(op, slice.what, whole.what);
  if (whole.what.content != Content::rank_contribution ||
      slice.what.content != Content::contribution)
    complain(op, "sums what is no contribution of a rank");
  if (found_.size() > before) return;
  expect_current(op, whole);
  const bool is_sliced = program_.shard(whole.what.shard).sharing == Sharing::sliced;
  for_each_tile(whole, [&](const TileRef& what, const Region&) {
    Truth& t = truth(what);
    if (!t.ranks_pending) complain(op, "sums a contribution over the ranks twice");
    t.ranks_pending = false;
    if (!is_sliced) t.contributions.push_back(next_version_++);
  });
  for_each_tile(slice, [&](const TileRef& what, const Region& region) {
    if (is_sliced) truth(what).contributions.push_back(next_version_++);
    put(what, region, newest(what));
  });
}

// The partials of this rank's gradient tiles, in order.
void ValueReplay::check_partials(const Op& op) {
  std::size_t i = 0;
  bool right = true;
  for (const Use& use : program_.segment(op.segment).uses)
    for (int tile = 0; tile < program_.num_tiles(use.shard); ++tile) {
      if (!program_.is_own(use.shard, tile)) continue;
      const TileRef what{use.shard, tile, Content::partials};
      right &= i + 1 < op.operands.size() && op.operands[i].what == what;
      if (right) expect(op, placed(what), op.operands[i].region, truth(placed(what)).value);
      ++i;
    }
  if (!right || i + 1 != op.operands.size())
    complain(op, "does not sum every gradient tile, in order");
}

void ValueReplay::sum(const Op& op) {
  if (program_.world == 1) complain(op, "sums for other ranks, in a plan for one");
  check_partials(op);
  const Operand& own = op.operands.back();
  if (own.what != TileRef{{}, program_.rank, Content::rank_sums} ||
      own.region.bytes != sizeof(double))
    complain(op, "makes other than this rank's sum");
  own_sum_ = next_version_++;
  put(own.what, own.region, own_sum_);
}

std::vector<TileRef> ValueReplay::reported_of_ranks() const {
  std::vector<TileRef> right = reported();
  const auto metrics = std::ranges::remove(right, Content::value, &TileRef::content);
  const bool has_metrics = !metrics.empty();
  right.erase(metrics.begin(), metrics.end());
  if (has_metrics) right.insert(right.begin(), {{}, whole_shard, Content::rank_metrics});
  return right;
}

}  // namespace strata
