// Random damage to plans of random programs: each is found, alone or beside others. Damage is wrong
// by what it is, but for that to edges: there the plain closure over all edges tells.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "strata/core/philox.hpp"
#include "strata/plan/plan.hpp"
#include "support/edge_closure.hpp"
#include "support/policies.hpp"
#include "support/toy_program.hpp"

namespace strata {
namespace {

using testing::drop_edges;
using testing::DroppedEdges;
using testing::EdgeClosure;
using testing::make_toy_program;
using testing::random_saving;
using testing::random_schedule;
using testing::random_versioned;
using testing::roomy_limits;
using testing::ToyShape;
using testing::ToyUpdate;

// One to four ranks, one to four micro-batches.
ToyShape random_verified_shape(std::uint64_t seed) {
  PhiloxStream random(seed, 81);
  const auto below = [&](std::uint64_t bound) {
    return static_cast<int>(random.next_below(bound));
  };
  const int group = 1 + below(2), world = below(2) == 0 ? 1 : 2 + below(3);
  return {.layers = 1 + below(2),
          .micro_batches = group * (1 + below(2)),
          .group = group,
          .kept_layers = below(3),
          .layer_elements = 6000,
          .tied = below(2) == 0,
          .update = static_cast<ToyUpdate>(below(2)),
          .world = world,
          .rank = below(static_cast<std::uint64_t>(world)),
          .zero_stage = below(4)};
}

// Without, with saves, or with commits.
Policy random_checkpoints(std::uint64_t seed) {
  return seed % 3 == 0   ? random_schedule(seed)
         : seed % 3 == 1 ? random_saving(seed)
                         : random_versioned(seed);
}

// A plan, and how to damage it.
class Damage {
 public:
  // Of schedule "train", or of every other plan that saves its "train_save".
  Damage(Program program, Plan plan, std::uint64_t seed)
      : program_(std::move(program)), right_(std::move(plan)), plan_(right_), random_(seed, 82) {
    if (plan_.schedules.back().name == "train_save" && below(2) == 0)
      damaged_ = plan_.schedules.size() - 1;
  }

  // So many kinds of damage, no two of a kind: they cannot undo each other.
  void inflict(int count) {
    std::vector<Kind> kinds(std::begin(all_kinds), std::end(all_kinds));
    for (; count > 0; --count) {
      const auto at = kinds.begin() + below(kinds.size());
      inflict(*at);
      kinds.erase(at);
    }
  }
  void inflict_kind(std::size_t kind) { inflict(all_kinds[kind]); }
  static std::size_t num_kinds() { return std::size(all_kinds); }

  bool is_wrong() const {
    return is_wrong_ || !EdgeClosure(schedule()).implies_all_of(*right_.schedule(schedule().name));
  }
  bool is_found() const { return !verify(program_, plan_).empty(); }
  const std::string& told() const { return told_; }

 private:
  using Kind = std::pair<const char*, void (Damage::*)()>;

  void inflict(const Kind& kind) {
    (this->*kind.second)();
    told_ += std::string(kind.first) + "; ";
  }
  int below(std::size_t bound) { return static_cast<int>(random_.next_below(bound)); }
  template <typename Items>
  auto& any_of(Items& items) {
    return items[static_cast<std::size_t>(below(items.size()))];
  }
  const Schedule& schedule() const { return plan_.schedules[damaged_]; }
  Schedule& schedule() { return plan_.schedules[damaged_]; }
  std::vector<Op>& ops() { return schedule().ops; }
  Op& any_op() { return any_of(ops()); }
  Operand& any_operand() {
    for (;;)
      if (Op& op = any_op(); !op.operands.empty()) return any_of(op.operands);
  }
  ShardId any_state() {
    constexpr std::array roles = {Role::weight, Role::master, Role::moment1};
    return program_.find(any_of(roles), below(program_.blocks.size()));
  }

  // --- Edges: wrong if the others do not imply what is lost

  void drop_an_edge() {
    if (Op& op = any_op(); !op.after.empty())
      op.after.erase(op.after.begin() + below(op.after.size()));
  }
  void wait_for_another_op() {
    Op& op = any_op();
    if (op.after.empty() || op.id.value == 0) return;
    any_of(op.after) = {{below(op.id.index())}, 0};
  }
  void wait_for_the_step_before() {
    if (Op& op = any_op(); !op.after.empty()) any_of(op.after).steps_back = 1;
  }

  // --- The rest: always wrong

  void flip_an_access() {
    Operand& operand = any_operand();
    operand.access = operand.access == Access::read ? Access::produce : Access::read;
    mark_wrong();
  }
  void resize_an_operand() {
    Region& region = any_operand().region;
    region.bytes += below(2) == 0 ? 8 : -std::uint64_t{4};
    mark_wrong();
  }
  void shift_a_read() {
    for (;;) {
      Operand& operand = any_operand();
      if (operand.access != Access::read && operand.access != Access::update) continue;
      operand.region.offset += 64;
      return mark_wrong();
    }
  }
  void call_an_operand_another() {
    Operand& operand = any_operand();
    if (below(2) == 0 || operand.what.tile < 0)  // the first tile of a shard may be all of it
      operand.what.shard.value += 1;
    else
      operand.what.tile += 1;
    mark_wrong();
  }
  void change_a_kind() {
    Op& op = any_op();
    op.kind = static_cast<OpKind>((static_cast<int>(op.kind) + 1 + below(14)) % 15);
    mark_wrong();
  }
  void change_a_lane() {
    Op& op = any_op();
    op.lane = static_cast<Lane>((static_cast<int>(op.lane) + 1 + below(10)) % num_lanes);
    mark_wrong();
  }
  void swap_on_a_lane() {
    auto& lane = schedule().lanes[static_cast<std::size_t>(Lane::compute)];
    std::swap(lane[0], lane[lane.size() - 1]);
    mark_wrong();
  }
  void leave_an_op_off_its_lane() {
    for (auto& lane : schedule().lanes)
      if (!lane.empty()) {
        lane.erase(lane.begin() + below(lane.size()));
        return mark_wrong();
      }
  }
  // Where a slot still holds what is moved once more, or nothing reads what was moved.
  static bool may_be_idle(const Op& op) {
    return op.kind == OpKind::copy || op.kind == OpKind::read || op.kind == OpKind::write;
  }
  void leave_out_an_op() {
    for (;;) {
      const auto op = ops().begin() + below(ops().size());
      if (may_be_idle(*op)) continue;
      ops().erase(op);
      derive_edges(schedule());
      return mark_wrong();
    }
  }
  void read_from_another_slot() {
    Operand& operand = any_operand();
    if (operand.access != Access::read && operand.access != Access::update) return;
    for (const SlotPool& pool : plan_.pools) {
      const std::uint64_t all = pool.slot_bytes * static_cast<std::uint64_t>(pool.num_slots);
      if (pool.num_slots < 2 || !operand.region.overlaps({pool.tier, 0, pool.offset, all}))
        continue;
      const std::uint64_t next = operand.region.offset - pool.offset + pool.slot_bytes;
      operand.region.offset = pool.offset + next % all;
      derive_edges(schedule());
      return mark_wrong();
    }
  }
  void serve_another_segment() {
    for (;;) {
      Op& op = any_op();
      if (op.kind != OpKind::run && op.kind != OpKind::update && op.kind != OpKind::norm &&
          op.kind != OpKind::save)
        continue;
      op.segment.value = (op.segment.value + 1) % static_cast<int>(program_.segments.size());
      return mark_wrong();
    }
  }
  void add_where_it_should_assign() {
    for (Op& op : ops()) {
      if (op.kind != OpKind::accumulate) continue;
      op.first_contribution = !op.first_contribution;
      op.operands[1].access = op.first_contribution ? Access::produce : Access::update;
      return mark_wrong();
    }
  }
  void move_a_home() {
    auto& homes = plan_.homes[any_state().index()];
    if (homes.empty()) return;  // lost
    any_of(homes).offset += 4096;
    mark_wrong();
  }
  void lose_a_home() {
    plan_.homes[any_state().index()].pop_back();
    mark_wrong();
  }
  void put_slots_on_a_home() {
    if (plan_.pools.empty()) return;
    SlotPool& pool = any_of(plan_.pools);
    for (const Region& home : plan_.homes[any_state().index()]) {
      if (home.tier != pool.tier || home.tier == Tier::nvme) continue;
      pool.offset = home.offset;
      return mark_wrong();
    }
  }
  void put_scratch_on_a_home() {
    for (const Region& home : plan_.homes[any_state().index()])
      for (Op& op : ops())
        if (home.tier == Tier::device && op.kind == OpKind::run) {
          op.operands.back().region.offset = home.offset;
          mark_wrong();
        }
  }
  void say_another_order() {
    UpdateOrder& order = plan_.policy.update_order;
    order = static_cast<UpdateOrder>((static_cast<int>(order) + 1 + below(2)) % 3);
    mark_wrong();
  }
  void lose_a_limit() {
    plan_.limits.drive_bytes.pop_back();
    mark_wrong();
  }
  void lose_a_schedule() {
    plan_.schedules.erase(plan_.schedules.begin() + 1);  // "eval"
    if (damaged_ > 0) --damaged_;
    mark_wrong();
  }
  void mark_wrong() { is_wrong_ = true; }

  static constexpr Kind all_kinds[] = {
      {"drop an edge", &Damage::drop_an_edge},
      {"wait for another op", &Damage::wait_for_another_op},
      {"wait for the step before", &Damage::wait_for_the_step_before},
      {"flip an access", &Damage::flip_an_access},
      {"resize an operand", &Damage::resize_an_operand},
      {"shift a read", &Damage::shift_a_read},
      {"call an operand another", &Damage::call_an_operand_another},
      {"change a kind", &Damage::change_a_kind},
      {"change a lane", &Damage::change_a_lane},
      {"swap on a lane", &Damage::swap_on_a_lane},
      {"leave an op off its lane", &Damage::leave_an_op_off_its_lane},
      {"leave out an op", &Damage::leave_out_an_op},
      {"read from another slot", &Damage::read_from_another_slot},
      {"serve another segment", &Damage::serve_another_segment},
      {"add where it should assign", &Damage::add_where_it_should_assign},
      {"move a home", &Damage::move_a_home},
      {"lose a home", &Damage::lose_a_home},
      {"put slots on a home", &Damage::put_slots_on_a_home},
      {"put scratch on a home", &Damage::put_scratch_on_a_home},
      {"say another order", &Damage::say_another_order},
      {"lose a limit", &Damage::lose_a_limit},
      {"lose a schedule", &Damage::lose_a_schedule},
  };

  Program program_;
  Plan right_, plan_;
  PhiloxStream random_;
  std::size_t damaged_ = 0;  // schedule
  bool is_wrong_ = false;
  std::string told_;
};

// Calls inflict(damage, i) for some damages to each of some plans.
template <typename Inflict>
void expect_found(std::uint64_t plans, std::uint64_t damages, Inflict inflict) {
  std::uint64_t wrong = 0;
  for (std::uint64_t seed = 0; seed < plans; ++seed) {
    const Program program = make_toy_program(random_verified_shape(seed));
    const Plan plan = make_plan(program, roomy_limits(), random_checkpoints(seed));
    ASSERT_TRUE(verify(program, plan).empty()) << "seed " << seed;
    for (std::uint64_t i = 0; i < damages; ++i) {
      Damage damage(program, plan, damages * seed + i);
      inflict(damage, i);
      wrong += damage.is_wrong();
      EXPECT_TRUE(damage.is_found() || !damage.is_wrong())
          << "seed " << seed << ", damage " << i << ": " << damage.told();
    }
  }
  EXPECT_GT(wrong, plans * damages * 3 / 4);
}

TEST(VerifierOfRandomPlans, FindsEachKindOfDamage) {
  expect_found(100, Damage::num_kinds(),
               [](Damage& damage, std::uint64_t i) { damage.inflict_kind(i); });
}

TEST(VerifierOfRandomPlans, FindsTwoOrThreeDamagesAtOnce) {
  expect_found(
      150, 8, [](Damage& damage, std::uint64_t i) { damage.inflict(2 + static_cast<int>(i % 2)); });
}

TEST(VerifierOfRandomPlans, FindsEachEdgeThatIsMissingUnlessTheOthersImplyIt) {
  int needed = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Program program = make_toy_program(random_verified_shape(seed));
    const Plan plan = make_plan(program, roomy_limits(), random_checkpoints(seed));
    const auto number = static_cast<std::int32_t>(seed % 8);
    const DroppedEdges dropped =
        drop_edges(program, plan, [&](const Op& op) { return op.id.value % 8 == number; });
    needed += dropped.needed;
    EXPECT_THAT(dropped.missed, ::testing::IsEmpty()) << "seed " << seed;
  }
  EXPECT_GT(needed, 500);
}

// Of the plain order: what the end of a step waits for, and what waits for it.
TEST(VerifierOfRandomPlans, FindsEachEdgeThatABarrierLacksUnlessTheOthersImplyIt) {
  int needed = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    const Program program = make_toy_program(random_verified_shape(seed));
    Policy policy = random_schedule(seed);
    policy.update_order = UpdateOrder::after_backward;
    const Plan plan = make_plan(program, roomy_limits(), policy);
    const OpId last = plan.schedules[0].ops.back().id;
    const DroppedEdges dropped = drop_edges(program, plan, [&](const Op& op) {
      return op.id == last || std::ranges::find(op.after, last, &Edge::op) != op.after.end();
    });
    needed += dropped.needed;
    EXPECT_THAT(dropped.missed, ::testing::IsEmpty()) << "seed " << seed;
  }
  EXPECT_GT(needed, 500);
}

}  // namespace
}  // namespace strata
