// What ops cost alone, by the formulas of docs/design/simulator.md.

#include <gtest/gtest.h>

#include <cmath>

#include "hand_schedule.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

using testing::HandSchedule;
using testing::unit_machine;

double share(const OpCost& cost, Resource resource) {
  return cost.share[static_cast<std::size_t>(resource)];
}

// The only op's, a run of these kernels.
OpCost cost_of(const std::vector<KernelWork>& kernels, const MachineProfile& machine) {
  HandSchedule hand;
  hand.run(1);
  hand.program().works[0].kernels = kernels;
  return hand.costs(machine).front();
}

MachineProfile kernel_machine() {
  MachineProfile machine = unit_machine();
  machine.accelerator.bf16 = {{1e6, 100}, {1e8, 300}};
  machine.accelerator.f32 = {{1e6, 50}};
  machine.accelerator.memory_bytes_per_s = 1000;
  machine.accelerator.attention_efficiency = 0.5;
  machine.accelerator.seconds_per_call = 2;
  return machine;
}

TEST(OpCost, TakesTheRateOfAMatrixProductByItsSize) {
  const auto rate = [](double flops) {
    return flops /
           (cost_of({{KernelClass::matmul, DType::bf16, flops, 0, 1}}, kernel_machine()).seconds -
            2);
  };
  EXPECT_NEAR(rate(1e6), 100, 1e-6);
  EXPECT_NEAR(rate(1e7), 200, 1e-6) << "half way, in the logarithm";
  EXPECT_NEAR(rate(1e8), 300, 1e-6);
  EXPECT_NEAR(rate(1e3), 100, 0.1) << "the smallest that is known";
  EXPECT_NEAR(rate(1e12), 300, 1e-6);
}

TEST(OpCost, AddsUpKernelsByWhatBoundsEach) {
  const OpCost cost = cost_of({{KernelClass::matmul, DType::f32, 1e6, 10, 2},
                               {KernelClass::attention, DType::bf16, 1e6, 0, 1},
                               {KernelClass::elementwise, DType::bf16, 1e12, 5000, 3},
                               {KernelClass::matmul, DType::bf16, 100, 4000, 1}},
                              kernel_machine());
  EXPECT_NEAR(cost.seconds, 2 * (2 + 20000.0) + (2 + 20000) + 3 * (2 + 5) + (2 + 4), 1e-6);
  EXPECT_EQ(share(cost, Resource::compute), 1);
}

TEST(OpCost, RefusesKernelsOfADTypeWithoutARate) {
  EXPECT_THROW(cost_of({{KernelClass::matmul, DType::f32, 1, 0, 1}}, unit_machine()), ConfigError);
}

TEST(OpCost, CrossesHostMemoryOnceForEachByteOfDma) {
  HandSchedule hand;
  hand.up(8);
  hand.down(8);
  hand.read(8);
  hand.write(8);
  MachineProfile machine = unit_machine();
  machine.host.memory_bytes_per_s = 4;
  const Resource over[] = {Resource::up, Resource::down, Resource::nvme_read, Resource::nvme_write};
  const std::vector<OpCost> costs = hand.costs(machine);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_DOUBLE_EQ(costs[i].seconds, 8);
    EXPECT_DOUBLE_EQ(share(costs[i], over[i]), 1);
    EXPECT_DOUBLE_EQ(share(costs[i], Resource::host_memory), 0.25);
  }
}

TEST(OpCost, TakesTheTimeOfTheSlowestResource) {
  HandSchedule hand;
  hand.up(8);
  MachineProfile machine = unit_machine();
  machine.host.memory_bytes_per_s = 0.5;
  const OpCost cost = hand.costs(machine).front();
  EXPECT_DOUBLE_EQ(cost.seconds, 16);
  EXPECT_DOUBLE_EQ(share(cost, Resource::up), 0.5);
  EXPECT_DOUBLE_EQ(share(cost, Resource::host_memory), 1);
}

TEST(OpCost, RoundsTransfersOfDrivesUpToWholeBlocks) {
  HandSchedule hand;
  hand.read(5);
  Plan plan = hand.plan();
  plan.limits.io_alignment = 4;
  EXPECT_DOUBLE_EQ(op_costs(hand.program(), plan, "train", unit_machine())[0].seconds, 8);
}

TEST(OpCost, CountsAPassOfTheOptimizerByItsLayout) {
  HandSchedule hand;
  hand.update();
  MachineProfile machine = unit_machine();
  machine.host.memory_bytes_per_s = 44;  // of the 22 bytes of a parameter
  const OpCost by_layout = hand.costs(machine).front();
  EXPECT_DOUBLE_EQ(by_layout.seconds, 4);
  EXPECT_DOUBLE_EQ(share(by_layout, Resource::update), 1);
  EXPECT_DOUBLE_EQ(share(by_layout, Resource::host_memory), 0.5);
  machine.host.updates.clear();
  EXPECT_DOUBLE_EQ(hand.costs(machine).front().seconds, 2) << "bound by memory";
}

TEST(OpCost, KnowsASplitMasterByItsDType) {
  HandSchedule hand;
  hand.update();
  for (Shard& shard : hand.program().shards) {
    if (shard.role == Role::gradient) shard.dtype = DType::bf16;
    if (shard.role == Role::master) shard.dtype = DType::u16;
    if (shard.role == Role::moment1) shard.dtype = DType::q8;
  }
  MachineProfile machine = unit_machine();
  machine.host.updates["bf16/split/q8"] = {0.5};
  EXPECT_DOUBLE_EQ(hand.costs(machine).front().seconds, 8);
}

TEST(OpCost, SavesIntoNewFilesOfOneDriveWhateverThePlanKeepsThere) {
  HandSchedule hand;
  hand.save();  // 16 bytes
  MachineProfile machine = unit_machine(2);
  EXPECT_DOUBLE_EQ(hand.costs(machine).front().seconds, 16);
  machine.drives[1].new_file_bytes_per_s = 0.5;
  const OpCost cost = hand.costs(machine).front();
  EXPECT_DOUBLE_EQ(cost.seconds, 32);
  EXPECT_DOUBLE_EQ(share(cost, Resource::nvme_write), 1) << "the plan has no drives of its own";
  machine.host.memory_bytes_per_s = 1;
  EXPECT_DOUBLE_EQ(hand.costs(machine).front().seconds, 48) << "read, written, and read again";
  EXPECT_NEAR(hand.costs(unit_machine(0)).front().seconds, 0, 1e-9) << "nobody knows where to";
}

TEST(OpCost, SavesASplitMasterJoined) {
  HandSchedule hand;
  Op& save = hand.op(hand.save());
  save.operands[0].region.bytes = 8;
  save.operands.push_back(save.operands[0]);  // its weight
  hand.program().shards[hand.program().find(Role::master, 0).index()].dtype = DType::u16;
  EXPECT_DOUBLE_EQ(hand.costs(unit_machine()).front().seconds, 16);
}

TEST(OpCost, TakesForACommitWhatFlushesTake) {
  HandSchedule hand;
  hand.add(OpKind::commit, Lane::save, {}, {});
  const OpCost cost = hand.costs(unit_machine()).front();
  EXPECT_GT(cost.seconds, 0.001);
  EXPECT_LT(cost.seconds, 0.1);
  EXPECT_EQ(share(cost, Resource::nvme_write), 0);
}

TEST(OpCost, CountsAPassOnTheAcceleratorByItsMemory) {
  HandSchedule hand;
  hand.update({}, Lane::compute);
  MachineProfile machine = unit_machine();
  machine.accelerator.memory_bytes_per_s = 11;
  machine.accelerator.seconds_per_call = 1;
  const OpCost cost = hand.costs(machine).front();
  EXPECT_DOUBLE_EQ(cost.seconds, 1 + 4 * 22 / 11.0);
  EXPECT_DOUBLE_EQ(share(cost, Resource::compute), 1);
  EXPECT_DOUBLE_EQ(share(cost, Resource::host_memory), 0);
}

TEST(OpCost, MovesAllButTheRanksOwnPartInACollective) {
  HandSchedule hand;
  const Operand slice{{}, {Tier::device, 0, 0, 2}, Access::read};
  const Operand whole{{}, {Tier::device, 0, 0, 8}, Access::produce};
  hand.add(OpKind::gather, Lane::comm, {slice, whole}, {});
  hand.add(OpKind::reduce, Lane::comm, {whole, slice}, {});
  hand.program().world = 4;
  MachineProfile machine = unit_machine();
  machine.comm = {2, 3, 0.5};
  const std::vector<OpCost> costs = hand.costs(machine);
  EXPECT_DOUBLE_EQ(costs[0].seconds, 0.5 + 6 / 2.0);
  EXPECT_DOUBLE_EQ(costs[1].seconds, 0.5 + 6 / 3.0);
}

TEST(MachineLimits, SharesHostMemoryAndDrivesAmongRanks) {
  MachineProfile machine = unit_machine(2);
  machine.ranks = 4;
  machine.accelerator.memory_bytes = 1000;
  machine.host.memory_bytes = 8000;
  machine.drives[0].bytes = 16000;
  machine.drives[1].read_bytes_per_s = machine.drives[1].write_bytes_per_s = 3;
  const TierLimits limits = machine_limits(machine, 0.5);
  EXPECT_EQ(limits.device_bytes, 500u);
  EXPECT_EQ(limits.host_bytes, 1000u);
  EXPECT_EQ(limits.drive_bytes[0], 2000u);
  EXPECT_DOUBLE_EQ(limits.drive_weights[1] / limits.drive_weights[0], 3);
}

TEST(Resource, HasAName) {
  EXPECT_EQ(resource_name(Resource::compute), "compute");
  EXPECT_EQ(resource_name(Resource::host_memory), "host memory");
  EXPECT_EQ(resource_name(Resource::nvme_read), "NVMe read");
}

}  // namespace
}  // namespace strata
