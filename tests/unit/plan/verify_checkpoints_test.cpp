// Damage to what plans say of checkpoints, each kind to some plans with saves, with commits, or
// with both: the checker finds it.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "strata/core/philox.hpp"
#include "support/policies.hpp"
#include "support/toy_program.hpp"

namespace strata {
namespace {

using testing::make_toy_program;
using testing::random_saving;
using testing::random_versioned;
using testing::roomy_limits;
using testing::ToyUpdate;
using testing::with_split_masters;

struct Damaged {
  Program program;
  Plan plan;
  PhiloxStream random;

  std::size_t below(std::size_t bound) { return random.next_below(bound); }
  // "train", or "train_save" where the plan has it and the damage is to what it saves.
  Schedule& schedule(OpKind kind) {
    const bool saves = kind == OpKind::save && plan.schedules.back().name == "train_save";
    return saves ? plan.schedules.back() : plan.schedules.front();
  }
  std::vector<std::size_t> all_of(OpKind kind) {
    std::vector<std::size_t> found;
    for (const Op& op : schedule(kind).ops)
      if (op.kind == kind) found.push_back(op.id.index());
    return found;
  }
  // One op of the kind, or none.
  Op* any(OpKind kind) {
    const auto found = all_of(kind);
    return found.empty() ? nullptr : &schedule(kind).ops[found[below(found.size())]];
  }
  void move(OpKind kind, std::size_t from, std::size_t to) {
    auto& ops = schedule(kind).ops;
    const Op op = ops[from];
    ops.erase(ops.begin() + static_cast<std::ptrdiff_t>(from));
    ops.insert(ops.begin() + static_cast<std::ptrdiff_t>(to), op);
    derive_edges(schedule(kind));
  }
};

// Returns whether there was something to damage.
using Kind = bool (*)(Damaged&);

template <OpKind kind>
bool leave_one_out(Damaged& d) {
  const Op* op = d.any(kind);
  if (op == nullptr) return false;
  auto& ops = d.schedule(kind).ops;
  ops.erase(ops.begin() + static_cast<std::ptrdiff_t>(op->id.index()));
  derive_edges(d.schedule(kind));
  return true;
}

template <OpKind kind>
bool do_one_twice(Damaged& d) {
  const Op* op = d.any(kind);
  if (op == nullptr) return false;
  const Op again = *op;
  auto& ops = d.schedule(kind).ops;
  ops.insert(ops.begin() + static_cast<std::ptrdiff_t>(again.id.index()), again);
  derive_edges(d.schedule(kind));
  return true;
}

// In a slot of its own the tile would still be as it was.
bool is_in_a_slot_of_its_own(const Plan& plan, const Op& save) {
  return std::ranges::any_of(plan.pools, [&](const SlotPool& pool) {
    const Region slots{pool.tier, 0, pool.offset,
                       pool.slot_bytes * static_cast<std::uint64_t>(pool.num_slots)};
    return pool.name == "checkpoint staging" && slots.overlaps(save.operands[0].region);
  });
}

bool save_after_all_updates(Damaged& d) {
  const Op* save = d.any(OpKind::save);
  if (save == nullptr || is_in_a_slot_of_its_own(d.plan, *save)) return false;
  d.move(OpKind::save, save->id.index(), d.schedule(OpKind::save).ops.size() - 2);
  return true;
}

bool save_what_training_alone_does_not(Damaged& d) {
  const Op* save = d.any(OpKind::save);
  if (save == nullptr || is_in_a_slot_of_its_own(d.plan, *save)) return false;
  Schedule& train = d.plan.schedules.front();
  train.ops.insert(train.ops.begin(), *save);
  derive_edges(train);
  return true;
}

bool save_another_tile(Damaged& d) {
  Op* save = d.any(OpKind::save);
  const Op* other = d.any(OpKind::save);
  if (save == nullptr || save->operands[0].what == other->operands[0].what) return false;
  save->operands = other->operands;
  derive_edges(d.schedule(OpKind::save));
  return true;
}

bool save_without_the_weight(Damaged& d) {
  Op* save = d.any(OpKind::save);
  if (save == nullptr || save->operands.size() < 2) return false;
  save->operands.pop_back();
  derive_edges(d.schedule(OpKind::save));
  return true;
}

bool overtake_a_save(Damaged& d) {
  Schedule& schedule = d.schedule(OpKind::save);
  for (Op& op : schedule.ops) {
    const auto waits = std::ranges::find_if(op.after, [&](const Edge& edge) {
      return schedule.ops[edge.op.index()].kind == OpKind::save;
    });
    if (op.kind != OpKind::update || waits == op.after.end() || op.lane != Lane::update) continue;
    op.after.erase(waits);
    return true;
  }
  return false;
}

bool commit_before_an_update(Damaged& d) {
  if (d.all_of(OpKind::commit).empty()) return false;
  d.move(OpKind::commit, d.all_of(OpKind::commit).front(), d.all_of(OpKind::update).back());
  return true;
}

bool commit_without_an_operand(Damaged& d) {
  Op* commit = d.any(OpKind::commit);
  if (commit == nullptr) return false;
  commit->operands.erase(commit->operands.begin() +
                         static_cast<std::ptrdiff_t>(d.below(commit->operands.size())));
  derive_edges(d.schedule(OpKind::commit));
  return true;
}

// All writes are awaited, and all of the next step's wait: nothing else orders them.
bool commit_without_an_edge(Damaged& d) {
  Op* commit = d.any(OpKind::commit);
  if (commit == nullptr || d.plan.policy.update_order == UpdateOrder::after_backward) return false;
  const auto writes = std::ranges::find_if(commit->after, [&](const Edge& edge) {
    return d.plan.schedules.front().ops[edge.op.index()].kind == OpKind::write;
  });
  commit->after.erase(writes);
  return true;
}

bool go_on_before_the_commit(Damaged& d) {
  const Op* commit = d.any(OpKind::commit);
  if (commit == nullptr || d.plan.policy.update_order == UpdateOrder::after_backward) return false;
  for (Op& op : d.plan.schedules.front().ops)
    if (op.kind == OpKind::norm || op.kind == OpKind::sum)
      std::erase_if(op.after, [&](const Edge& edge) { return edge.op == commit->id; });
  return true;
}

bool put_save_buffers_on_a_home(Damaged& d) {
  for (const auto& homes : d.plan.homes)
    for (const Region& home : homes)
      if (home.tier == Tier::host && d.plan.save_buffers.bytes > 0) {
        d.plan.save_buffers.offset = home.offset;
        return true;
      }
  return false;
}

bool shrink_the_save_buffers(Damaged& d) {
  if (d.plan.save_buffers.bytes == 0) return false;
  d.plan.save_buffers.bytes -= 8;
  return true;
}

bool say_that_saves_are_otherwise(Damaged& d) {
  d.plan.policy.background_saves = !d.plan.policy.background_saves;
  return true;
}

bool say_that_versions_are_otherwise(Damaged& d) {
  d.plan.policy.versioned_state = !d.plan.policy.versioned_state;
  return true;
}

// The second place of the one is then the other's first.
bool put_a_home_behind_another(Damaged& d) {
  auto& homes = d.plan.homes[d.program.find(Role::master, 0).index()];
  if (!d.plan.policy.versioned_state || homes.size() < 2) return false;
  homes[1].drive = homes[0].drive;
  homes[1].offset = homes[0].offset + (homes[0].bytes + 4095) / 4096 * 4096;
  return true;
}

struct NamedKind {
  const char* name;
  Kind inflict;
};

constexpr NamedKind all_kinds[] = {
    {"LeaveOutASave", leave_one_out<OpKind::save>},
    {"LeaveOutTheCommit", leave_one_out<OpKind::commit>},
    {"SaveTwice", do_one_twice<OpKind::save>},
    {"CommitTwice", do_one_twice<OpKind::commit>},
    {"SaveAfterAllUpdates", save_after_all_updates},
    {"SaveWhatTrainingAloneDoesNot", save_what_training_alone_does_not},
    {"SaveAnotherTile", save_another_tile},
    {"SaveWithoutTheWeight", save_without_the_weight},
    {"OvertakeASave", overtake_a_save},
    {"CommitBeforeAnUpdate", commit_before_an_update},
    {"CommitWithoutAnOperand", commit_without_an_operand},
    {"CommitWithoutAnEdge", commit_without_an_edge},
    {"GoOnBeforeTheCommit", go_on_before_the_commit},
    {"PutSaveBuffersOnAHome", put_save_buffers_on_a_home},
    {"ShrinkTheSaveBuffers", shrink_the_save_buffers},
    {"SayThatSavesAreOtherwise", say_that_saves_are_otherwise},
    {"SayThatVersionsAreOtherwise", say_that_versions_are_otherwise},
    {"PutAHomeBehindAnother", put_a_home_behind_another},
};

// Programs of one to three ranks, every third plan with commits; masters are split in some.
Damaged whole(std::uint64_t seed) {
  PhiloxStream random(seed, 84);
  const auto below = [&](std::uint64_t bound) {
    return static_cast<int>(random.next_below(bound));
  };
  const int world = 1 + below(3);
  Program program = make_toy_program({.layers = 1 + below(2),
                                      .micro_batches = 1 + below(2),
                                      .layer_elements = 6000,
                                      .tied = below(2) == 0,
                                      .update = static_cast<ToyUpdate>(below(2)),
                                      .world = world,
                                      .rank = below(static_cast<std::uint64_t>(world)),
                                      .zero_stage = below(4)});
  const bool is_versioned = seed % 3 == 0;
  if (!is_versioned && seed % 2 == 0) program = with_split_masters(std::move(program));
  Plan plan = make_plan(program, roomy_limits(),
                        is_versioned ? random_versioned(seed) : random_saving(seed));
  return {std::move(program), std::move(plan), PhiloxStream(seed, 85)};
}

class VerifierOfCheckpoints : public ::testing::TestWithParam<NamedKind> {};

INSTANTIATE_TEST_SUITE_P(Damage, VerifierOfCheckpoints, ::testing::ValuesIn(all_kinds),
                         [](const auto& kind) { return std::string(kind.param.name); });

TEST_P(VerifierOfCheckpoints, FindsIt) {
  int inflicted = 0;
  for (std::uint64_t seed = 0; seed < 48; ++seed) {
    Damaged damaged = whole(seed);
    ASSERT_TRUE(verify(damaged.program, damaged.plan).empty()) << "seed " << seed;
    if (!GetParam().inflict(damaged)) continue;
    ++inflicted;
    EXPECT_FALSE(verify(damaged.program, damaged.plan).empty()) << "seed " << seed;
  }
  EXPECT_GE(inflicted, 4);
}

}  // namespace
}  // namespace strata
