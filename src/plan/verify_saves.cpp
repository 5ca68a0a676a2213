// What the checker demands of checkpoints: a step that saves hands over all of the state that it
// began with, once, and a versioned step ends with one commit of all that it made.

#include <fmt/format.h>

#include <algorithm>

#include "plan/saved_state.hpp"
#include "plan/verify_values.hpp"

namespace strata {

// Other ops may have made newer ones by then, elsewhere.
void ValueReplay::save(const Op& op) {
  for (const Operand& operand : op.operands) {
    const TileRef what = placed(operand.what);
    expect(op, what, operand.region, truth(what).at_begin);
  }
  if (truth(placed(op.operands[0].what)).saved++ > 0) complain(op, "saves a tile twice in a step");
}

void ValueReplay::commit(const Op& op) {
  ++commits_;
  if (!std::ranges::equal(op.operands, committed(), {}, &Operand::what))
    return complain(op, "leaves out a tile of the state, the ranks' sums or the norm");
  for (const Operand& operand : op.operands) expect_current(op, operand);
  for (SegmentId id : sequence_.segments) {
    const Segment& s = program_.segment(id);
    if (s.kind != SegmentKind::update) continue;
    const Use& gradient = updated_gradient(s);
    if (!truth(placed({gradient.shard, gradient.tile})).updated)
      complain(op, fmt::format("comes before '{}'", s.name));
  }
}

std::vector<TileRef> ValueReplay::committed() const {
  std::vector<TileRef> all;
  for (const Shard& shard : program_.shards)
    for (int tile = 0; is_optimizer_state(shard.role) && tile < program_.num_tiles(shard.id);
         ++tile)
      all.push_back({shard.id, tile, Content::value});
  if (program_.world > 1) all.push_back({{}, whole_shard, Content::rank_sums});
  all.push_back({{}, whole_shard, Content::scalars});
  return all;
}

void ValueReplay::check_saves() {
  const bool commits = plan_.policy.versioned_state && norms_expected_ > 0;
  if (commits_ != (commits ? 1 : 0))
    complain(fmt::format("schedule '{}' commits {} times a step", schedule_.name, commits_));
  if (schedule_.name != saving_schedule) return;
  for (const Shard& shard : program_.shards)
    for (int tile = 0; is_optimizer_state(shard.role) && tile < program_.num_tiles(shard.id);
         ++tile) {
      const TileRef what = placed({shard.id, tile, Content::value});
      if (is_saved(program_, shard.id, tile) && truth(what).saved == 0)
        complain(fmt::format("schedule '{}' does not save {}", schedule_.name, describe(what)));
    }
}

}  // namespace strata
