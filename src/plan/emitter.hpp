#pragma once
// Emits the ops of one sequence in program order, as if they ran one after the other; edges are
// derived afterwards.

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "plan/layout.hpp"
#include "strata/plan/plan.hpp"

namespace strata {

// The slots through which tiles of a role pass host memory on their way from or to an update.
SlotPurpose state_staging(Role role);
// The slots through which they pass the device, where it updates what does not live there.
SlotPurpose device_tile(Role role);

// Whether a step also hands its state to a checkpoint.
enum class Checkpointing : std::uint8_t { off, on };

class Emitter {
 public:
  Emitter(const Program& program, const Policy& policy, Layout& layout, const Sequence& sequence,
          Checkpointing checkpointing = Checkpointing::off);
  Schedule emit();

 private:
  enum class Group : std::uint8_t { step, state };  // which lanes serve a movement

  void segment(const Segment& segment);
  // Model segments.
  void run(const Segment& segment);
  Operand bind(const Use& use);
  Region weight_on_device(ShardId shard);
  void fetch_tiles(ShardId shard, const Region& target);
  Region activation_on_device(ShardId shard);
  Region input_on_device(ShardId shard);
  Region produced_on_device(ShardId shard);
  bool stays_on_device(ShardId shard) const;
  void settle(const Operand& operand);  // after run: brings what was produced to where it lives
  void keep_activation(const Operand& operand);
  void fetch_metric(const Operand& operand);

  // Gradients.
  void add_contribution(ShardId shard, const Region& contribution);
  void add_tile(ShardId shard, int tile, const Region& part);
  Region contribution_beside(TileRef contributed, const Region& part, Tier home);
  Region staged_sum(TileRef value);
  void find_continued_sums();
  bool stays_staged(ShardId shard);
  bool stored_as_contributed(ShardId shard) const;
  void finish_gradient_tile(ShardId shard, int tile, const Region& where);

  // Several ranks.
  TileRef whole_of(ShardId shard, Content content = Content::value) const;
  TileRef slice_of(ShardId shard, Content content = Content::value) const;
  Region own_part(const Region& whole) const;
  void gather(TileRef slice, const Region& from, TileRef whole, const Region& to);
  void gather_weight(ShardId shard, const Region& whole);
  void sum_pending_contributions();
  bool adds_on_device(ShardId gradient) const;
  void add_contributions_in(const Region& slot);
  void add_contributions_in_use();
  void add_contributions(std::size_t count);
  void add_all_contributions();
  Region sum_over_ranks(ShardId shard, const Region& whole);
  void count_update_of_whole(const Segment& update);
  void count_down_to_sharing(const Segment& update);
  void share_new_weights();
  void share_new_weight(ShardId shard);
  Region new_weight_on_device(ShardId shard);
  Region tile_part(ShardId shard, int tile, const Region& all) const;
  void send_others_home(ShardId shard, const Region& whole);
  void place_metrics(const Segment& segment);
  Region rank_metrics();
  Region rank_sums();
  void sum_partials(std::vector<Operand> partials);
  void report_ranks(std::vector<Operand>& operands);

  // Optimizer.
  void norm(const Segment& segment);
  void update(const Segment& segment);
  Operand update_operand(const Use& use, Tier engine);
  Operand gradient_operand(const Use& use, Tier engine);
  Region gradient_on_host(TileRef what);
  Operand state_operand(const Use& use, Tier engine);
  Operand weight_operand(const Use& use, Tier engine);
  Operand update_gate(const Segment& segment, Tier engine);
  void send_home(const Operand& operand);
  void report();

  // Checkpoints.
  void save_at_the_beginning();
  void save_beside_update(const Segment& update, Tier engine);
  bool is_saved_beside_update(const Segment& update, const Use& use) const;
  void save(const Segment& update, const Use& use, std::optional<Tier> engine);
  Operand operand_to_save(const Use& use, std::optional<Tier> engine);
  Region tile_to_save(TileRef what, std::optional<Tier> engine);
  void commit();

  // Movement.
  Region tile_on_host(TileRef what, SlotPurpose purpose, Group group);
  Region tile_slot(TileRef what, SlotPurpose purpose);
  Region tile_on_device(TileRef what, const Region& on_host);
  Region staging_on_way_home(TileRef what);
  void transfer(const TileRef& what, const Region& source, const Region& target, Group group);
  static std::pair<OpKind, Lane> route(const Region& source, const Region& target, Group group);

  Op& add(OpKind kind, Lane lane, std::vector<Operand> operands);
  Region partials(ShardId shard, int tile, Tier tier);
  Region scalars(Tier tier);
  Region metric(ShardId shard, Tier tier);
  std::uint64_t slot_bytes(ShardId shard, DType dtype) const;

  const Program& program_;
  const Policy& policy_;
  Layout& layout_;
  const Sequence& sequence_;
  Schedule schedule_;
  SegmentId current_;
  std::vector<Region> in_use_;  // what the segment that is being bound has of slots
  std::map<ShardId, int> contributions_total_, contributions_seen_;
  std::map<std::pair<int, int>, SegmentId>
      update_of_tile_;                  // (block, tile), updates emitted during backward
  std::set<SegmentId> device_updates_;  // the others are the host's
  std::set<SegmentId> sum_continues_;   // the next contribution is to the same gradient alone
  std::set<ShardId> kept_;              // read by something later than the next segment: goes home
  std::vector<ShardId> metrics_;
  std::map<ShardId, std::uint64_t> metric_offset_;  // in a rank's row
  std::uint64_t metric_row_bytes_ = 0;
  struct PendingContribution {
    Operand contribution;
    SegmentId segment;
  };
  struct SummedContribution {
    ShardId shard;
    Region where;
    SegmentId segment;
  };
  std::vector<PendingContribution> pending_contributions_;  // of this rank
  std::deque<SummedContribution> summed_contributions_;     // of all ranks, not yet added
  std::vector<ShardId> weights_to_share_;
  std::map<ShardId, int> updates_left_;  // of replicated weights that ranks update by slices
  const Checkpointing checkpointing_;
  bool has_norm_ = false, reported_ = false;
  bool device_scalars_ready_ = false;
};

}  // namespace strata
