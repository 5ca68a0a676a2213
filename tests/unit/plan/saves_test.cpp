// Steps that save and steps that commit: what is in their schedules, what they need of memory, and
// what the planner and the checker refuse.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "strata/core/error.hpp"
#include "support/policies.hpp"
#include "support/toy_program.hpp"
#include "support/violations.hpp"

namespace strata {
namespace {

using testing::all_on;
using ::testing::HasSubstr;
using testing::joined;
using testing::make_toy_program;
using testing::random_saving;
using testing::random_schedule;
using testing::random_versioned;
using testing::roomy_limits;
using testing::ToyShape;
using testing::ToyUpdate;
using testing::with_split_masters;

// One to four ranks in each stage; some with split masters.
Program random_program(std::uint64_t seed) {
  PhiloxStream random(seed, 83);
  const auto below = [&](std::uint64_t bound) {
    return static_cast<int>(random.next_below(bound));
  };
  const int group = 1 + below(2), world = below(2) == 0 ? 1 : 2 + below(3);
  const Program program = make_toy_program({.layers = 1 + below(3),
                                            .micro_batches = group * (1 + below(2)),
                                            .group = group,
                                            .tied = below(2) == 0,
                                            .update = static_cast<ToyUpdate>(below(2)),
                                            .world = world,
                                            .rank = below(static_cast<std::uint64_t>(world)),
                                            .zero_stage = below(4)});
  return below(3) == 0 ? with_split_masters(program) : program;
}

using Tile = std::pair<ShardId, int>;

bool is_state(Role role) {
  return role == Role::master || role == Role::moment1 || role == Role::moment2;
}

// This rank's part of the state, as far as the model has elements there.
std::set<Tile> own_state(const Program& program) {
  std::set<Tile> tiles;
  for (const Shard& shard : program.shards)
    for (int tile = 0; is_state(shard.role) && tile < program.num_tiles(shard.id); ++tile)
      if (program.is_own(shard.id, tile) &&
          program.place_begin(shard.id, program.place(shard.id, tile)) <
              program.model_elements(shard.id))
        tiles.insert({shard.id, tile});
  return tiles;
}

std::vector<const Op*> ops_of(const Plan& plan, std::string_view schedule, OpKind kind) {
  std::vector<const Op*> found;
  for (const Op& op : plan.schedule(schedule)->ops)
    if (op.kind == kind) found.push_back(&op);
  return found;
}

TEST(SavingSchedules, VerifyForRandomProgramsPlacementsSlotsOrdersAndEngines) {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    const Program program = random_program(seed);
    const Plan plan = make_plan(program, roomy_limits(), random_saving(seed));
    ASSERT_EQ(joined(verify(program, plan)), "") << "seed " << seed;
  }
}

TEST(SavingSchedules, SaveEachOwnTileOfTheStateOnce) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Program program = random_program(seed);
    const Plan plan = make_plan(program, roomy_limits(), random_saving(seed));
    std::set<Tile> saved;
    for (const Op* op : ops_of(plan, "train_save", OpKind::save)) {
      const TileRef& what = op->operands[0].what;
      EXPECT_TRUE(saved.insert({what.shard, what.tile}).second) << "twice, seed " << seed;
      const bool is_split = program.shard(what.shard).dtype == DType::u16;
      EXPECT_EQ(op->operands.size(), is_split ? 2u : 1u);
    }
    EXPECT_EQ(saved, own_state(program)) << "seed " << seed;
    EXPECT_TRUE(ops_of(plan, "train", OpKind::save).empty());
    EXPECT_TRUE(ops_of(plan, "eval", OpKind::save).empty());
  }
}

bool same_ops(const Schedule& a, const Schedule& b) {
  return std::ranges::equal(a.ops, b.ops, [](const Op& x, const Op& y) {
    return x.kind == y.kind && x.lane == y.lane && x.segment == y.segment &&
           std::ranges::equal(x.after, y.after,
                              [](const Edge& e, const Edge& f) {
                                return e.op == f.op && e.steps_back == f.steps_back;
                              }) &&
           std::ranges::equal(x.operands, y.operands, [](const Operand& o, const Operand& p) {
             return o.what == p.what && o.access == p.access && o.region.tier == p.region.tier &&
                    o.region.drive == p.region.drive && o.region.offset == p.region.offset &&
                    o.region.bytes == p.region.bytes;
           });
  });
}

TEST(SavingSchedules, LeaveTheOthersAsTheyAreWithoutThem) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Program program = random_program(seed);
    const Plan plain = make_plan(program, roomy_limits(), random_schedule(seed));
    const Plan saving = make_plan(program, roomy_limits(), random_saving(seed));
    for (const char* name : {"train", "eval"})
      EXPECT_TRUE(same_ops(*plain.schedule(name), *saving.schedule(name))) << "seed " << seed;
    EXPECT_EQ(plain.schedule("train_save"), nullptr);
    EXPECT_EQ(plain.save_buffers.bytes, 0u);
  }
}

// What the step has in host memory anyway is neither read nor copied once more.
TEST(SavingSchedules, AddNoMovementWhereTheStateIsOnTheCpuOrOnNvme) {
  const Program program = make_toy_program({});
  for (const Tier tier : {Tier::host, Tier::nvme})
    for (const double streamed : {0.0, 0.5, 1.0}) {
      Policy policy = all_on(tier);
      policy.background_saves = true;
      policy.streamed_updates = streamed;
      const Plan plan = make_plan(program, roomy_limits(), policy);
      EXPECT_EQ(plan.schedule("train_save")->ops.size(),
                plan.schedule("train")->ops.size() + own_state(program).size());
    }
}

int num_ops(const Plan& plan, std::string_view schedule, OpKind kind) {
  return static_cast<int>(ops_of(plan, schedule, kind).size());
}

// And nothing comes down but what lives on the device.
TEST(SavingSchedules, ReadNothingTwice) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Program program = random_program(seed);
    const Plan plan = make_plan(program, roomy_limits(), random_saving(seed));
    EXPECT_EQ(num_ops(plan, "train_save", OpKind::read), num_ops(plan, "train", OpKind::read));
    std::set<Tile> on_device;
    for (const auto& shard : program.shards)
      for (int tile = 0; tile < static_cast<int>(plan.homes[shard.id.index()].size()); ++tile)
        if (is_state(shard.role) || shard.role == Role::weight)
          if (plan.homes[shard.id.index()][static_cast<std::size_t>(tile)].tier == Tier::device)
            on_device.insert({shard.id, tile});
    const int more =
        num_ops(plan, "train_save", OpKind::copy) - num_ops(plan, "train", OpKind::copy);
    EXPECT_LE(more, static_cast<int>(on_device.size())) << "seed " << seed;
  }
}

// The accelerator waits for nothing else.
TEST(SavingSchedules, SaveWhatIsOnTheDeviceFirst) {
  const Program program = make_toy_program({});
  Policy policy = all_on(Tier::host);
  for (const Role role : {Role::master, Role::moment1, Role::moment2})
    policy.fractions[static_cast<std::size_t>(role)] = {0.5, 0.5, 0};
  policy.background_saves = true;
  const Plan plan = make_plan(program, roomy_limits(), policy);
  std::vector<Tier> homes;
  for (const Op* op : ops_of(plan, "train_save", OpKind::save)) {
    const TileRef& what = op->operands[0].what;
    homes.push_back(plan.homes[what.shard.index()][static_cast<std::size_t>(what.tile)].tier);
  }
  EXPECT_EQ(homes.front(), Tier::device);
  EXPECT_EQ(homes.back(), Tier::host);
  EXPECT_TRUE(std::ranges::is_sorted(homes));
}

// Host tiles at once, NVMe tiles with their updates.
TEST(SavingSchedules, BeginWithWhatIsNotOnNvme) {
  const Program program = make_toy_program({});
  Policy policy = all_on(Tier::host);
  policy.fractions[static_cast<std::size_t>(Role::moment1)] = {0, 0, 1};
  policy.background_saves = true;
  const Plan plan = make_plan(program, roomy_limits(), policy);
  const auto& ops = plan.schedule("train_save")->ops;
  const auto first_run = std::ranges::find(ops, OpKind::run, &Op::kind);
  for (const Op* op : ops_of(plan, "train_save", OpKind::save)) {
    const TileRef& what = op->operands[0].what;
    const bool on_nvme = program.shard(what.shard).role == Role::moment1;
    EXPECT_EQ(op->id > first_run->id, on_nvme);
    EXPECT_TRUE(on_nvme || std::ranges::all_of(
                               op->after, [](const Edge& edge) { return edge.steps_back == 1; }));
  }
}

// But for the updates that overwrite what is saved, and for slots that it passes through.
TEST(SavingSchedules, KeepNothingWaitingButWhatOverwritesTheState) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Program program = random_program(seed);
    Policy policy = random_saving(seed);
    if (policy.update_order == UpdateOrder::after_backward)
      policy.update_order = UpdateOrder::deferred;  // A barrier waits for all lanes.
    const Plan plan = make_plan(program, roomy_limits(), policy);
    const Schedule& schedule = *plan.schedule("train_save");
    for (const Op& op : schedule.ops)
      for (const Edge& edge : op.after) {
        const Op& save = schedule.ops[edge.op.index()];
        if (save.lane != Lane::save) continue;
        const bool overwrites = std::ranges::any_of(op.operands, [&](const Operand& written) {
          return written.access != Access::read &&
                 std::ranges::any_of(save.operands, [&](const Operand& read) {
                   return read.region.overlaps(written.region);
                 });
        });
        EXPECT_TRUE(overwrites) << "seed " << seed << ": " << op_kind_name(op.kind);
      }
  }
}

TEST(SavingSchedules, HaveBuffersForNinePiecesInHostMemory) {
  const Program program = make_toy_program({});
  Policy policy = all_on(Tier::nvme);
  const Plan plain = make_plan(program, roomy_limits(), policy);
  policy.background_saves = true;
  const Plan plan = make_plan(program, roomy_limits(), policy);
  const std::uint64_t piece = 4096 * sizeof(float) + 4096;
  EXPECT_EQ(plan.save_buffers.tier, Tier::host);
  EXPECT_EQ(plan.save_buffers.bytes, 9 * piece);
  EXPECT_EQ(plan.tier_bytes[1], plain.tier_bytes[1] + 9 * piece);
  EXPECT_THAT(format_plan(program, plan), HasSubstr("checkpoint buffers"));
}

TEST(SavingSchedules, AreNotMadeWhereNothingTrains) {
  Program program = make_toy_program({});
  std::erase_if(program.sequences, [](const Sequence& s) { return s.name == "train"; });
  Policy policy = all_on(Tier::host);
  policy.background_saves = true;
  const Plan plan = make_plan(program, roomy_limits(), policy);
  EXPECT_EQ(plan.schedule("train_save"), nullptr);
  EXPECT_EQ(plan.save_buffers.bytes, 0u);
  EXPECT_EQ(joined(verify(program, plan)), "");
}

// --- Versioned state

Policy versioned(UpdateOrder order = UpdateOrder::deferred) {
  Policy policy = all_on(Tier::nvme);
  policy.update_order = order;
  policy.versioned_state = true;
  return policy;
}

TEST(VersionedState, VerifiesForRandomProgramsPlacementsSlotsOrdersAndEngines) {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    const Program program = make_toy_program({.layers = 1 + static_cast<int>(seed % 3),
                                              .micro_batches = 2,
                                              .update = static_cast<ToyUpdate>(seed % 2),
                                              .world = 1 + static_cast<int>(seed % 4),
                                              .zero_stage = static_cast<int>(seed / 4 % 4)});
    const Plan plan = make_plan(program, roomy_limits(), random_versioned(seed));
    ASSERT_EQ(joined(verify(program, plan)), "") << "seed " << seed;
  }
}

TEST(VersionedState, EndsEachStepWithOneCommitAfterAllItsWrites) {
  const Program program = make_toy_program({});
  for (const UpdateOrder order : {UpdateOrder::after_backward, UpdateOrder::deferred}) {
    Policy policy = versioned(order);
    policy.background_saves = true;
    const Plan plan = make_plan(program, roomy_limits(), policy);
    for (const char* name : {"train", "train_save"}) {
      const auto commits = ops_of(plan, name, OpKind::commit);
      ASSERT_EQ(commits.size(), 1u);
      std::set<OpId> awaited;
      for (const Edge& edge : commits.front()->after) {
        EXPECT_EQ(edge.steps_back, 0);
        awaited.insert(edge.op);
      }
      for (const Op* write : ops_of(plan, name, OpKind::write))
        EXPECT_TRUE(!is_state(program.shard(write->operands[1].what.shard).role) ||
                    awaited.contains(write->id));
    }
    EXPECT_TRUE(ops_of(plan, "eval", OpKind::commit).empty());
  }
}

// Where one rank's sum is there, the rank has committed: where the norm is known, all have.
TEST(VersionedState, KeepsTheNextNormWaitingForTheCommits) {
  for (const int world : {1, 2}) {
    const Program program = make_toy_program({.world = world});
    const Plan plan = make_plan(program, roomy_limits(), versioned());
    const OpId commit = ops_of(plan, "train", OpKind::commit).front()->id;
    const Op& waits = *ops_of(plan, "train", world == 1 ? OpKind::norm : OpKind::sum).front();
    EXPECT_TRUE(std::ranges::any_of(waits.after, [&](const Edge& edge) {
      return edge.op == commit && edge.steps_back == 1;
    })) << world;
  }
}

TEST(VersionedState, CountsItsBytesTwice) {
  const Program program = make_toy_program({});
  Policy policy = versioned();
  const Plan plan = make_plan(program, roomy_limits(), policy);
  policy.versioned_state = false;
  const Plan plain = make_plan(program, roomy_limits(), policy);
  std::uint64_t state = 0;
  for (const Shard& shard : program.shards)
    if (is_state(shard.role))
      for (const Region& home : plain.homes[shard.id.index()])
        state += (home.bytes + 4095) / 4096 * 4096;
  EXPECT_EQ(plan.tier_bytes[2], plain.tier_bytes[2] + state);
  EXPECT_EQ(plan.drive_bytes[0] + plan.drive_bytes[1], plan.tier_bytes[2]);
  EXPECT_THAT(format_plan(program, plan), HasSubstr("second version of the state"));
  TierLimits limits = roomy_limits(1);
  limits.drive_bytes = {plan.tier_bytes[2]};
  EXPECT_NO_THROW(make_plan(program, limits, versioned()));
  limits.drive_bytes = {plan.tier_bytes[2] - 1};
  EXPECT_THROW(make_plan(program, limits, versioned()), OutOfMemory);
}

std::string refusal(const Program& program, const Policy& policy) {
  try {
    make_plan(program, roomy_limits(), policy);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(VersionedState, IsRefusedUnlessAllOfItIsOnNvme) {
  const Program program = make_toy_program({});
  for (const Role role : {Role::master, Role::moment1, Role::moment2}) {
    Policy policy = versioned();
    policy.fractions[static_cast<std::size_t>(role)] = {0, 0.5, 0.5};
    EXPECT_THAT(refusal(program, policy), HasSubstr(std::string(role_name(role)) + "/"));
  }
}

TEST(VersionedState, IsRefusedWithUpdatesDuringBackwardAndWithSplitMasters) {
  const Program program = make_toy_program({});
  EXPECT_THAT(refusal(program, versioned(UpdateOrder::during_backward)),
              HasSubstr("during_backward"));
  EXPECT_THAT(refusal(with_split_masters(program), versioned()), HasSubstr("split"));
}

}  // namespace
}  // namespace strata
