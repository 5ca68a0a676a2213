// What holds of every simulated step, over random programs, plans and machines.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "strata/core/philox.hpp"
#include "strata/plan/simulate.hpp"
#include "support/policies.hpp"
#include "support/toy_program.hpp"

namespace strata {
namespace {

using testing::make_toy_program;
using testing::random_policy;
using testing::roomy_limits;
using testing::ToyShape;

constexpr int num_seeds = 120;

double between(PhiloxStream& random, double least, double most) {
  return least + (most - least) * static_cast<double>(random.next_below(1000)) / 999;
}

// A program of the toys whose segments take time.
Program working_program(std::uint64_t seed) {
  PhiloxStream random(seed, 5);
  Program program = make_toy_program({.layers = 1 + static_cast<int>(seed % 5),
                                      .micro_batches = 1 + static_cast<int>(seed % 3),
                                      .tied = seed % 2 == 0});
  for (Segment& segment : program.segments) {
    if (segment.kind == SegmentKind::update || segment.kind == SegmentKind::norm) continue;
    segment.work = static_cast<int>(program.works.size());
    program.works.push_back(
        {{{KernelClass::matmul, DType::bf16, between(random, 0, 5e9), 1e4, 2}}});
  }
  return program;
}

MachineProfile random_machine(std::uint64_t seed) {
  PhiloxStream random(seed, 6);
  MachineProfile machine;
  machine.name = "random";
  machine.ranks = 1 + static_cast<int>(random.next_below(3));
  machine.accelerator.memory_bytes_per_s = 1e9;
  machine.accelerator.bf16 = {{1e6, 1e11}, {1e10, 1e12}};
  machine.accelerator.seconds_per_call = between(random, 0, 1e-4);
  machine.link.up_bytes_per_s = between(random, 1e6, 2e7);
  machine.link.down_bytes_per_s = between(random, 1e6, 2e7);
  if (seed % 2 == 0)
    machine.link.both_bytes_per_s =
        1.3 * std::max(machine.link.up_bytes_per_s, machine.link.down_bytes_per_s);
  machine.host.memory_bytes_per_s = between(random, 1e7, 1e8);
  if (seed % 3 == 0) machine.host.updates["f32/f32/f32"] = {between(random, 1e5, 1e7)};
  for (int i = 0; i < 2; ++i) {
    DriveProfile drive{1ull << 40, between(random, 1e6, 2e7), between(random, 1e6, 1e7), 0, 0};
    if (seed % 4 < 2) drive.mixed_bytes_per_s = 2 * drive.write_bytes_per_s;
    if (drive.write_bytes_per_s > drive.read_bytes_per_s) drive.mixed_bytes_per_s = 0;
    machine.drives.push_back(drive);
  }
  return machine;
}

struct Case {
  explicit Case(std::uint64_t seed)
      : program(working_program(seed)), machine(random_machine(seed)) {
    Policy policy = random_policy(seed);
    policy.update_order = seed % 4 == 3 ? UpdateOrder::during_backward : UpdateOrder::deferred;
    plan = make_plan(program, roomy_limits(), policy);
  }
  const Schedule& train() const { return *plan.schedule("train"); }
  Simulation simulate() const { return strata::simulate(program, plan, "train", machine); }

  Program program;
  MachineProfile machine;
  Plan plan;
};

TEST(SimulateRandom, TakesAtLeastTheBoundAndAtMostAllOpsInTurn) {
  for (std::uint64_t seed = 0; seed < num_seeds; ++seed) {
    const Case random(seed);
    const Simulation simulation = random.simulate();
    double serial = 0;
    for (const OpCost& cost : op_costs(random.program, random.plan, "train", random.machine))
      serial += cost.seconds;
    ASSERT_GE(simulation.least_seconds, simulation.bound_seconds() * (1 - 1e-9)) << seed;
    ASSERT_GE(simulation.step_seconds, simulation.least_seconds * (1 - 1e-9)) << seed;
    ASSERT_LE(simulation.step_seconds, serial * (1 + 1e-9)) << seed;
    ASSERT_LE(simulation.first_step_seconds, serial * (1 + 1e-9)) << seed;
  }
}

TEST(SimulateRandom, AccountsForEverySecondOfTheComputeLane) {
  for (std::uint64_t seed = 0; seed < num_seeds; ++seed) {
    const Simulation simulation = Case(seed).simulate();
    const double waited =
        std::accumulate(simulation.compute_waits.begin(), simulation.compute_waits.end(), 0.0);
    const double busy = simulation.lane_busy[static_cast<std::size_t>(Lane::compute)];
    ASSERT_NEAR(waited + busy, simulation.step_seconds, 1e-5 * simulation.step_seconds) << seed;
  }
}

MachineProfile twice_as_fast(MachineProfile machine) {
  for (auto* rates : {&machine.accelerator.bf16, &machine.accelerator.f32})
    for (MatmulRate& rate : *rates) rate.flops_per_s *= 2;
  machine.accelerator.memory_bytes_per_s *= 2;
  machine.accelerator.seconds_per_call /= 2;
  machine.link.up_bytes_per_s *= 2;
  machine.link.down_bytes_per_s *= 2;
  machine.link.both_bytes_per_s *= 2;
  machine.host.memory_bytes_per_s *= 2;
  for (auto& [name, update] : machine.host.updates) update.params_per_s *= 2;
  for (DriveProfile& drive : machine.drives) {
    drive.read_bytes_per_s *= 2;
    drive.write_bytes_per_s *= 2;
    drive.mixed_bytes_per_s *= 2;
  }
  return machine;
}

TEST(SimulateRandom, TakesHalfTheTimeWhenEveryRateIsDoubled) {
  for (std::uint64_t seed = 0; seed < num_seeds; ++seed) {
    Case random(seed);
    const Simulation slow = random.simulate();
    random.machine = twice_as_fast(random.machine);
    const Simulation fast = random.simulate();
    ASSERT_DOUBLE_EQ(fast.step_seconds, slow.step_seconds / 2) << seed;
    for (std::size_t i = 0; i < slow.ops.size(); ++i)
      ASSERT_DOUBLE_EQ(fast.ops[i].end, slow.ops[i].end / 2) << seed << " op " << i;
  }
}

TEST(SimulateRandom, IsAPureFunction) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Simulation one = Case(seed).simulate(), other = Case(seed).simulate();
    ASSERT_EQ(one.step_seconds, other.step_seconds);
    ASSERT_EQ(one.compute_waits, other.compute_waits);
    for (std::size_t i = 0; i < one.ops.size(); ++i) {
      ASSERT_EQ(one.ops[i].start, other.ops[i].start);
      ASSERT_EQ(one.ops[i].end, other.ops[i].end);
    }
  }
}

TEST(SimulateRandom, TakesEachOpAtLeastAsLongAsItTakesAlone) {
  for (std::uint64_t seed = 0; seed < num_seeds; ++seed) {
    const Case random(seed);
    const Simulation simulation = random.simulate();
    const auto costs = op_costs(random.program, random.plan, "train", random.machine);
    for (const OpTime& time : simulation.ops)
      ASSERT_GE(time.end - time.start, costs[time.op.index()].seconds - 1e-9) << seed;
  }
}

// Drives serve in order; so does a lane that is none of theirs.
int server_of(const Op& op) {
  if (!is_nvme_lane(op.lane)) return 0;
  return op.operands[op.kind == OpKind::read ? 0 : 1].region.drive;
}

TEST(SimulateRandom, KeepsTheOrderOfLanes) {
  for (std::uint64_t seed = 0; seed < num_seeds; ++seed) {
    const Case random(seed);
    const Simulation simulation = random.simulate();
    for (const auto& lane : random.train().lanes) {
      std::map<int, double> free;
      for (const OpId id : lane) {
        const OpTime& time = simulation.ops[id.index()];
        double& last =
            free.try_emplace(server_of(random.train().ops[id.index()]), -1e9).first->second;
        ASSERT_GE(time.start, last - 1e-12) << seed << " op " << id.value;
        last = time.end;
      }
    }
  }
}

TEST(SimulateRandom, StartsNoOpBeforeItsEdgesAreMet) {
  for (std::uint64_t seed = 0; seed < num_seeds; ++seed) {
    const Case random(seed);
    const Simulation simulation = random.simulate();
    for (const Op& op : random.train().ops)
      for (const Edge& edge : op.after) {
        const double met =
            simulation.ops[edge.op.index()].end - edge.steps_back * simulation.step_seconds;
        ASSERT_GE(simulation.ops[op.id.index()].start, met - 1e-5 * simulation.step_seconds)
            << "seed " << seed << ": op " << op.id.value << " after " << edge.op.value;
      }
  }
}

TEST(SimulateRandom, ReachesTheBoundWhereOneResourceDoesNearlyAllTheWork) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    Case random(seed);
    for (MatmulRate& rate : random.machine.accelerator.bf16) rate.flops_per_s /= 1e4;
    const Simulation simulation = random.simulate();
    ASSERT_EQ(simulation.bound_by, Resource::compute);
    ASSERT_LE(simulation.step_seconds, 1.02 * simulation.bound_seconds()) << seed;
  }
}

// As many ops as a plan for 70B has: all of it, within what a test may take.
TEST(SimulateRandom, SimulatesAPlanOfTwentyThousandOps) {
  Program program = make_toy_program({.layers = 80,
                                      .micro_batches = 2,
                                      .layer_elements = 16 * 4096,
                                      .embedding_elements = 16 * 4096});
  program.works.push_back({{{KernelClass::matmul, DType::bf16, 1e9, 0, 1}}});
  for (Segment& segment : program.segments) segment.work = 0;
  const Plan plan = make_plan(program, roomy_limits(), testing::all_on(Tier::nvme));
  const std::size_t num_ops = plan.schedule("train")->ops.size();
  EXPECT_GT(num_ops, 20000u);
  EXPECT_LT(num_ops, 60000u);
  EXPECT_TRUE(verify(program, plan).empty());
  const Simulation simulation = simulate(program, plan, "train", random_machine(1));
  EXPECT_EQ(simulation.ops.size(), num_ops);
  EXPECT_GE(simulation.step_seconds, simulation.bound_seconds());
}

}  // namespace
}  // namespace strata
