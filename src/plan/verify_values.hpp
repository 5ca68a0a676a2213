#pragma once
// The first half of the checker: replays a schedule in emission order and follows what every byte
// holds. Ops are well formed: verify_form.hpp.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "plan/interval_map.hpp"
#include "strata/plan/plan.hpp"

namespace strata {

class ValueReplay {
 public:
  ValueReplay(const Program& program, const Plan& plan, const Schedule& schedule,
              std::vector<Violation>& found);
  void run(int steps);

 private:
  using Version = std::int64_t;
  struct Held {
    TileRef what;
    Version version = -1;     // -1: nothing meaningful
    std::uint64_t begin = 0;  // where the first byte of it lies
  };
  // What is true of one place of one shard, by the Program. Of places in other ranks' slices it is
  // what their own replays say: all ranks issue the same ops.
  struct Truth {
    Version value = 0;
    Version rank_contribution = 0;
    bool ranks_pending = false;          // not yet summed over the ranks
    std::vector<Version> contributions;  // of all ranks, not yet added; the first is to be next
    int contributions_added = 0;
    Version squared = -1;  // gradient version of its partial sums
    bool updated = false;  // in this step
    Version at_begin = 0;  // of the step
    int saved = 0;         // in this step
  };

  void begin();
  void begin_step();
  void end_step();
  void check_apart(const Op& op);
  void replay(const Op& op);
  void move(const Op& op);
  void overwrite_padding(const Region& region);
  void feed(const Op& op);
  void segment(const Op& op);
  void segment_use(const Op& op, const Use& use, const Operand& operand);
  void contribute(const Op& op, const TileRef& what);
  void store_contribution(const Op& op, Truth& t);
  void add_contribution(const Op& op, Truth& t);
  void accumulate(const Op& op);
  void square(const Op& op);
  void norm(const Op& op);
  void update(const Op& op);
  void update_use(const Op& op, const Use& use, const Operand& operand);
  void update_gate(const Op& op, const Use& gradient);
  void report(const Op& op);
  std::vector<TileRef> reported() const;
  // Several ranks.
  void gather(const Op& op);
  void gather_sums(const Op& op);
  void gather_metrics(const Op& op);
  void reduce(const Op& op);
  void sum(const Op& op);
  // Checkpoints.
  void save(const Op& op);
  void commit(const Op& op);
  std::vector<TileRef> committed() const;
  void check_saves();
  std::vector<TileRef> reported_of_ranks() const;
  void check_collective(const Op& op, const Operand& slice, const Operand& whole, Tier tier);
  void check_extent(const Op& op, const TileRef& slice, const TileRef& whole);
  bool is_slice(const TileRef& what) const;
  bool is_whole(const TileRef& what) const;
  void check_partials(const Op& op);
  void advance(const Segment& update, const Use& use);

  void expect(const Op& op, const TileRef& what, const Region& region, Version version);
  void expect_current(const Op& op, const Operand& operand);
  void put(const TileRef& what, const Region& region, Version version);
  // Calls visit(TileRef with a place for its tile, region part) for each tile of an operand.
  template <typename Visit>
  void for_each_tile(const Operand& operand, Visit visit) const {
    const TileRef& what = operand.what;
    if (!what.shard.valid()) return visit(what, operand.region);
    if (what.tile >= 0) return visit(placed(what), operand.region);
    const Places places = places_of(what);
    const std::int64_t begin = program_.place_begin(what.shard, places.begin),
                       width = width_of(what);
    for (int place = places.begin; place < places.end; ++place)
      visit(
          TileRef{what.shard, place, what.content},
          operand.region.part(
              static_cast<std::uint64_t>((program_.place_begin(what.shard, place) - begin) * width),
              static_cast<std::uint64_t>(program_.tile_count(what.shard, place) * width)));
  }
  struct Places {
    int begin = 0, end = 0;
  };
  Places places_of(const TileRef& what) const;  // of what is no single tile
  std::int64_t width_of(const TileRef& what) const;
  TileRef placed(const TileRef& what) const {
    return {what.shard, what.tile < 0 ? what.tile : program_.place(what.shard, what.tile),
            what.content};
  }
  // A Plan may name a place that there is not: then what is true of nothing.
  Truth& truth(ShardId shard, int place) {
    auto& places = truths_[shard.index()];
    const auto at = static_cast<std::size_t>(place);
    return place >= 0 && at < places.size() ? places[at] : nowhere_ = {};
  }
  Truth& truth(const TileRef& placed_tile) { return truth(placed_tile.shard, placed_tile.tile); }
  TileRef expected_of(const Use& use) const;
  // `placed_tile` names a place.
  Version current(const TileRef& placed_tile);
  Version newest(const TileRef& placed_tile);  // where several are current, the last made
  int contributions_expected(ShardId shard) const;
  const Use& updated_gradient(const Segment& update) const;
  void complain(const Op& op, const std::string& why);
  void complain(const std::string& why);
  std::string describe(const TileRef& what) const;

  const Program& program_;
  const Plan& plan_;
  const Schedule& schedule_;
  const Sequence& sequence_;
  std::vector<Violation>& found_;
  IntervalMap<Held> held_;
  std::vector<std::vector<Truth>> truths_;  // [shard][place]
  Truth nowhere_;
  Version next_version_ = 1;
  Version scalars_ = 0;
  Version own_sum_ = 0, rank_sums_ = 0, rank_metrics_ = 0;
  std::size_t next_segment_ = 0;  // of the model segments of the sequence, in order
  std::vector<SegmentId> model_segments_;
  int norms_expected_ = 0, norms_ = 0, reports_ = 0, commits_ = 0;  // in a step
  std::map<ShardId, int> contributions_;              // to each gradient in a step
};

}  // namespace strata
