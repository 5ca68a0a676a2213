#include "plan/verify_form.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "plan/saved_state.hpp"
#include "strata/core/bytes.hpp"
#include "strata/program/step.hpp"

namespace strata {
namespace {

class FormCheck {
 public:
  FormCheck(const Program& program, const Plan& plan, const Schedule& schedule,
            std::vector<Violation>& found)
      : program_(program),
        plan_(plan),
        schedule_(schedule),
        segments_(sequence_of(program, schedule)->segments.begin(),
                  sequence_of(program, schedule)->segments.end()),
        found_(found) {
    std::set<ShardId> metrics;
    for (SegmentId id : segments_)
      for (const Use& use : program.segment(id).uses)
        if (program.shard(use.shard).role == Role::metric && metrics.insert(use.shard).second)
          metric_bytes_ += static_cast<std::uint64_t>(program.shard(use.shard).bytes());
  }

  void run() {
    for (const Op& op : schedule_.ops) check(op);
  }

 private:
  void check(const Op& op) {
    if (!has_segment(op)) return complain(op, "serves no segment of its kind of the sequence");
    if (!has_operands(op)) return complain(op, fmt::format("has {} operands", op.operands.size()));
    for (std::size_t i = 0; i < op.operands.size(); ++i)
      if (!check_operand(op, i)) return;
    if (!reaches(op)) complain(op, "is on a lane that does not reach its operands");
    check_content(op);
  }

  bool has_segment(const Op& op) const {
    const bool needs_one = op.kind == OpKind::run || op.kind == OpKind::norm ||
                           op.kind == OpKind::sum || op.kind == OpKind::update ||
                           op.kind == OpKind::save;
    if (!needs_one) return op.segment.value < std::ssize(program_.segments);
    if (!segments_.contains(op.segment)) return false;
    const SegmentKind kind = program_.segment(op.segment).kind;
    if (op.kind == OpKind::run) return is_model_segment(kind);
    const bool updates = op.kind == OpKind::update || op.kind == OpKind::save;
    return kind == (updates ? SegmentKind::update : SegmentKind::norm);
  }

  bool has_operands(const Op& op) const {
    const std::size_t count = op.operands.size();
    switch (op.kind) {
      case OpKind::feed:
        return count == 1;
      case OpKind::run: {
        const Segment& s = program_.segment(op.segment);
        return count == s.uses.size() + (s.scratch_bytes > 0 ? 1 : 0);
      }
      case OpKind::update:
        return count == program_.segment(op.segment).uses.size() + 1;
      case OpKind::norm:
      case OpKind::sum:
      case OpKind::commit:
        return count >= 1;
      case OpKind::save:
        return count == 1 || count == 2;
      case OpKind::report:
        return true;
      default:
        return count == 2;
    }
  }

  // --- One operand

  bool check_operand(const Op& op, std::size_t index) {
    const Operand& operand = op.operands[index];
    const auto wrong = [&](const std::string& why) {
      complain(op, fmt::format("has an operand {} that {}", index, why));
      return false;
    };
    if (!is_something(operand.what)) return wrong("is said to hold nothing there is");
    if (operand.access != access_of(op, index)) return wrong("it accesses otherwise than its kind");
    const std::uint64_t bytes = bytes_of(op, operand.what);
    if (operand.region.bytes != bytes)
      return wrong(fmt::format("has {} bytes of {}", operand.region.bytes, bytes));
    return true;
  }

  bool is_something(const TileRef& what) const {
    switch (what.content) {
      case Content::value:
      case Content::contribution:
      case Content::rank_contribution:
        return is_part_of_shard(what);
      case Content::partials:
        return what.tile >= 0 && is_part_of_shard(what);
      case Content::scratch:
      case Content::scalars:
        return !what.shard.valid() && what.tile == whole_shard;
      case Content::rank_sums:
      case Content::rank_metrics:
        return !what.shard.valid() && (what.tile == whole_shard || what.tile == program_.rank);
    }
    return false;
  }

  bool is_part_of_shard(const TileRef& what) const {
    if (!what.shard.valid() || what.shard.index() >= program_.shards.size()) return false;
    if (what.tile >= 0) return what.tile < program_.num_tiles(what.shard);
    if (what.tile == whole_shard) return true;
    const bool is_sliced = program_.shard(what.shard).sharing == Sharing::sliced;
    return what.tile == (is_sliced ? all_slices : own_slice);
  }

  Access access_of(const Op& op, std::size_t index) const {
    const bool is_last = index + 1 == op.operands.size();
    switch (op.kind) {
      case OpKind::run:
      case OpKind::update: {
        const auto& uses = program_.segment(op.segment).uses;
        if (index < uses.size()) return uses[index].access;
        return op.kind == OpKind::run ? Access::produce : Access::read;  // scratch, or the gate
      }
      case OpKind::accumulate:
        if (index == 0) return Access::read;
        return op.first_contribution ? Access::produce : Access::update;
      case OpKind::report:
      case OpKind::save:
      case OpKind::commit:
        return Access::read;
      default:
        return is_last ? Access::produce : Access::read;
    }
  }

  std::uint64_t bytes_of(const Op& op, const TileRef& what) const {
    const auto world = static_cast<std::uint64_t>(program_.world);
    const std::uint64_t rows = what.tile == whole_shard ? world : 1;
    switch (what.content) {
      case Content::scratch:
        return op.segment.valid() ? program_.segment(op.segment).scratch_bytes : 0;
      case Content::partials:
        return sizeof(double) *
               static_cast<std::uint64_t>(
                   ceil_div(program_.tile_count(what.shard, what.tile), norm_chunk_elements));
      case Content::scalars:
        return sizeof(UpdateScalars);
      case Content::rank_sums:
        return sizeof(double) * rows;
      case Content::rank_metrics:
        return metric_bytes_ * rows;
      case Content::value:
        return elements_bytes(program_.shard(what.shard).dtype, what);
      default:
        return elements_bytes(program_.contribution_dtype, what);
    }
  }

  std::uint64_t elements_bytes(DType dtype, const TileRef& what) const {
    std::int64_t elements = program_.shard(what.shard).count;
    if (what.tile >= 0) elements = program_.tile_count(what.shard, what.tile);
    if (what.tile == all_slices) elements = program_.whole_elements(what.shard);
    if (what.tile == own_slice) elements = program_.slice_elements(what.shard);
    return static_cast<std::uint64_t>(storage_bytes(dtype, elements));
  }

  // --- Lanes and tiers

  bool reaches(const Op& op) const {
    switch (op.kind) {
      case OpKind::feed:
        return op.lane == Lane::h2d && all_in(op, Tier::device);
      case OpKind::copy:
        return reaches_copy(op);
      case OpKind::read:
        return (op.lane == Lane::read || op.lane == Lane::state_read) &&
               moves(op, Tier::nvme, Tier::host);
      case OpKind::write:
        return (op.lane == Lane::write || op.lane == Lane::state_write) &&
               moves(op, Tier::host, Tier::nvme);
      case OpKind::run:
        return op.lane == Lane::compute && all_in(op, Tier::device);
      case OpKind::accumulate:
      case OpKind::square:
        return all_in(op, op.lane == Lane::compute ? Tier::device : Tier::host) && has_engine(op);
      case OpKind::update:  // its gate may lie elsewhere
        return has_engine(op);
      case OpKind::norm:
      case OpKind::sum:
      case OpKind::report:
        return op.lane == Lane::update && all_in(op, Tier::host);
      case OpKind::gather:
      case OpKind::reduce:
        return op.lane == Lane::comm;
      case OpKind::save:
        return op.lane == Lane::save && all_in(op, Tier::host);
      case OpKind::commit:
        return op.lane == Lane::save;
    }
    return false;
  }

  static bool reaches_copy(const Op& op) {
    switch (op.lane) {
      case Lane::h2d:
      case Lane::state_h2d:
        return moves(op, Tier::host, Tier::device);
      case Lane::d2h:
      case Lane::state_d2h:
        return moves(op, Tier::device, Tier::host);
      default:
        return op.lane == Lane::comm && moves(op, Tier::device, Tier::device);
    }
  }

  static bool has_engine(const Op& op) {
    return op.lane == Lane::compute || op.lane == Lane::update;
  }
  static bool all_in(const Op& op, Tier tier) {
    return std::ranges::all_of(op.operands,
                               [&](const Operand& operand) { return operand.region.tier == tier; });
  }
  static bool moves(const Op& op, Tier from, Tier to) {
    return op.operands[0].region.tier == from && op.operands[1].region.tier == to;
  }

  // --- What operands are, where the Program does not say it

  void check_content(const Op& op) {
    switch (op.kind) {
      case OpKind::feed:
        if (!is_value_of(op.operands[0].what, Role::input)) complain(op, "feeds no input");
        return;
      case OpKind::read:
        return check_whole_tile(op, op.operands[0]);
      case OpKind::write:
        return check_whole_tile(op, op.operands[1]);
      case OpKind::accumulate:
        return check_gradient_tile(op, op.operands[1].what);
      case OpKind::square:
        check_gradient_tile(op, op.operands[0].what);
        if (op.operands[1].what != partials_of(op.operands[0].what))
          complain(op, "puts the sums of one tile where those of another are");
        return;
      case OpKind::norm:
        if (op.operands.back().what.content != Content::scalars)
          complain(op, "makes other than the norm's scalars");
        return;
      case OpKind::save:
        return check_saved(op);
      case OpKind::commit:
        for (const Operand& operand : op.operands)
          if (operand.what.content == Content::value) check_whole_tile(op, operand);
        return;
      default:
        return;
    }
  }

  // A tile of its segment's, and of a split master the weight's that the segment uses.
  void check_saved(const Op& op) {
    if (schedule_.name != saving_schedule) return complain(op, "saves, in a step that does not");
    const Segment& update = program_.segment(op.segment);
    const auto is_of = [&](const Operand& operand, const Use& use) {
      return operand.what == TileRef{use.shard, use.tile, Content::value};
    };
    const TileRef& what = op.operands[0].what;
    if (!std::ranges::any_of(update.uses,
                             [&](const Use& use) { return is_of(op.operands[0], use); }) ||
        !is_saved(program_, what.shard, what.tile))
      return complain(op, "saves what is no part of this rank's state, or another update's");
    const bool has_weight = op.operands.size() == 2;
    if (has_weight != is_split(program_, what.shard) ||
        (has_weight && !is_of(op.operands[1], *program_.use_of(update, Role::weight))))
      complain(op, "does not save a master with its weight where that is half of it");
  }

  // A store moves whole tiles, from and to their homes.
  void check_whole_tile(const Op& op, const Operand& disk) {
    if (disk.what.content != Content::value) return complain(op, "stores what is no value");
    const auto& homes = plan_.homes[disk.what.shard.index()];
    const auto tile = static_cast<std::size_t>(std::max(disk.what.tile, 0));
    if (disk.what.tile < 0 && homes.size() != 1) return complain(op, "moves more than one tile");
    if (tile >= homes.size() || homes[tile].tier != Tier::nvme ||
        homes[tile].drive != disk.region.drive || homes[tile].offset != disk.region.offset)
      complain(op, "moves a tile that has no home there");
  }

  void check_gradient_tile(const Op& op, const TileRef& what) {
    if (!is_value_of(what, Role::gradient) || what.tile < 0) complain(op, "is of no gradient tile");
  }

  bool is_value_of(const TileRef& what, Role role) const {
    return what.content == Content::value && program_.shard(what.shard).role == role;
  }

  static TileRef partials_of(const TileRef& what) {
    return {what.shard, what.tile, Content::partials};
  }

  void complain(const Op& op, const std::string& why) {
    if (found_.size() < 20)
      found_.push_back({fmt::format("op {} ({} on {}) {}", op.id.value, op_kind_name(op.kind),
                                    lane_name(op.lane), why)});
  }

  const Program& program_;
  const Plan& plan_;
  const Schedule& schedule_;
  std::set<SegmentId> segments_;
  std::uint64_t metric_bytes_ = 0;  // one rank's row
  std::vector<Violation>& found_;
};

}  // namespace

void verify_form(const Program& program, const Plan& plan, const Schedule& schedule,
                 std::vector<Violation>& found) {
  FormCheck(program, plan, schedule, found).run();
}

}  // namespace strata
