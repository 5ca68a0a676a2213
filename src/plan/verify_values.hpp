#pragma once
// The first half of the checker: replays a schedule in emission order and follows what every byte
// holds.

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
    Version version = -1;  // -1: nothing meaningful
  };
  // What is true of one tile of one shard, by the Program.
  struct Truth {
    Version value = 0;
    Version contribution = 0;
    bool contribution_pending = false;
    int contributions_added = 0;
    Version squared = -1;  // gradient version of its partial sums
    bool updated = false;  // in this step
  };

  void begin();
  void begin_step();
  void end_step();
  void replay(const Op& op);
  void move(const Op& op);
  void feed(const Op& op);
  void segment(const Op& op);
  void segment_use(const Op& op, const Use& use, const Operand& operand);
  void accumulate(const Op& op);
  void square(const Op& op);
  void norm(const Op& op);
  void update(const Op& op);
  void update_use(const Op& op, const Use& use, const Operand& operand);
  void update_gate(const Op& op, const Use& gradient);
  void report(const Op& op);

  void expect(const Op& op, const TileRef& what, const Region& region, Version version);
  void expect_current(const Op& op, const Operand& operand);
  void put(const TileRef& what, const Region& region, Version version);
  // Calls visit(TileRef with a tile, region part, width) for each tile of an operand.
  template <typename Visit>
  void for_each_tile(const Operand& operand, Visit visit) const;
  Truth& truth(ShardId shard, int tile) { return truths_[{shard.value, tile}]; }
  Version current(const TileRef& what);
  int contributions_expected(ShardId shard) const;
  const Use& updated_gradient(const Segment& update) const;
  std::uint64_t tile_bytes(ShardId shard, int tile) const;
  void complain(const Op& op, const std::string& why);
  void complain(const std::string& why);
  std::string describe(const TileRef& what) const;

  const Program& program_;
  const Plan& plan_;
  const Schedule& schedule_;
  const Sequence* sequence_ = nullptr;
  std::vector<Violation>& found_;
  IntervalMap<Held> held_;
  std::map<std::pair<int, int>, Truth> truths_;
  Version next_version_ = 1;
  Version scalars_ = 0;
  std::size_t next_segment_ = 0;  // of the model segments of the sequence, in order
  std::vector<SegmentId> model_segments_;
  std::map<ShardId, int> contributions_;  // to each gradient in a step
};

}  // namespace strata
