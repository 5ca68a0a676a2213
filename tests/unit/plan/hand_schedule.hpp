#pragma once
// Schedules written op by op, on a machine whose rates are 1: a byte over a link or a drive, a flop
// on the accelerator and a parameter of the optimizer take a second each. What else they cross is
// so fast that it does not show.

#include <cstdint>
#include <utility>
#include <vector>

#include "strata/plan/plan.hpp"
#include "strata/plan/simulate.hpp"

namespace strata::testing {

inline MachineProfile unit_machine(int drives = 1) {
  MachineProfile machine;
  machine.name = "unit";
  machine.accelerator.memory_bytes_per_s = 1e12;
  machine.accelerator.bf16 = {{1, 1}};
  machine.link = {1, 1, 0};
  machine.host.memory_bytes_per_s = 1e12;
  machine.host.updates["f32/f32/f32"] = {1};
  machine.comm = {1, 1, 0};
  for (int i = 0; i < drives; ++i) machine.drives.push_back({1 << 30, 1, 1, 0, 0});
  return machine;
}

class HandSchedule {
 public:
  HandSchedule() {
    schedule_.name = "train";
    plan_.limits.io_alignment = 1;
    for (const Role role : {Role::gradient, Role::master, Role::moment1, Role::weight})
      add_shard(role);
  }

  OpId run(double seconds, std::vector<Edge> after = {}) {
    SegmentWork work;
    work.kernels.push_back({KernelClass::matmul, DType::bf16, seconds, 0, 1});
    Segment segment;
    segment.work = static_cast<int>(program_.works.size());
    program_.works.push_back(std::move(work));
    const SegmentId id = program_.add(std::move(segment));
    return add(OpKind::run, Lane::compute, {}, std::move(after), id);
  }
  OpId up(std::uint64_t bytes, std::vector<Edge> after = {}, Lane lane = Lane::h2d) {
    return move(OpKind::copy, lane, on(Tier::host, bytes), on(Tier::device, bytes),
                std::move(after));
  }
  OpId down(std::uint64_t bytes, std::vector<Edge> after = {}, Lane lane = Lane::d2h) {
    return move(OpKind::copy, lane, on(Tier::device, bytes), on(Tier::host, bytes),
                std::move(after));
  }
  OpId read(std::uint64_t bytes, std::vector<Edge> after = {}, std::uint8_t drive = 0,
            Lane lane = Lane::read) {
    return move(OpKind::read, lane, {Tier::nvme, drive, 0, bytes}, on(Tier::host, bytes),
                std::move(after));
  }
  OpId write(std::uint64_t bytes, std::vector<Edge> after = {}, std::uint8_t drive = 0,
             Lane lane = Lane::write) {
    return move(OpKind::write, lane, on(Tier::host, bytes), {Tier::nvme, drive, 0, bytes},
                std::move(after));
  }
  // Of the state's tile `tile`, which has as many parameters as `tile_elements` was given.
  OpId update(std::vector<Edge> after = {}, Lane lane = Lane::update) {
    std::vector<Operand> operands;
    for (const Shard& shard : program_.shards) {
      const auto bytes = static_cast<std::uint64_t>(shard.bytes());
      const Access access = shard.role == Role::gradient ? Access::read
                            : shard.role == Role::weight ? Access::produce
                                                         : Access::update;
      operands.push_back({{shard.id, 0, Content::value}, on(Tier::host, bytes), access});
    }
    operands.push_back({{{}, -1, Content::scalars}, {Tier::host, 0, 0, 0}, Access::read});
    return add(OpKind::update, lane, std::move(operands), std::move(after));
  }
  // Of the state's master.
  OpId save(std::vector<Edge> after = {}) {
    const Shard& master = program_.shard(program_.find(Role::master, 0));
    const auto bytes = static_cast<std::uint64_t>(master.bytes());
    return add(OpKind::save, Lane::save,
               {{{master.id, 0, Content::value}, on(Tier::host, bytes), Access::read}},
               std::move(after));
  }
  OpId norm(std::vector<Edge> after = {}) {
    return add(OpKind::norm, Lane::update, {}, std::move(after));
  }
  OpId report(std::vector<Edge> after = {}) {
    return add(OpKind::report, Lane::update, {}, std::move(after));
  }
  OpId add(OpKind kind, Lane lane, std::vector<Operand> operands, std::vector<Edge> after,
           SegmentId segment = {}) {
    Op op;
    op.id = {static_cast<std::int32_t>(schedule_.ops.size())};
    op.kind = kind;
    op.lane = lane;
    op.segment = segment;
    op.operands = std::move(operands);
    op.after = std::move(after);
    schedule_.lanes[static_cast<std::size_t>(lane)].push_back(op.id);
    schedule_.ops.push_back(std::move(op));
    return schedule_.ops.back().id;
  }
  // The next step then begins when all of this one is done: it is seen alone.
  void close_step() {
    std::vector<Edge> all;
    for (const Op& op : schedule_.ops) all.push_back({op.id, 0});
    norm(std::move(all));
    report();
  }

  Program& program() { return program_; }
  Op& op(OpId id) { return schedule_.ops[id.index()]; }
  Plan plan() const {
    Plan plan = plan_;
    plan.schedules.push_back(schedule_);
    return plan;
  }
  Simulation simulate(const MachineProfile& machine) const {
    return strata::simulate(program_, plan(), "train", machine);
  }
  std::vector<OpCost> costs(const MachineProfile& machine) const {
    return op_costs(program_, plan(), "train", machine);
  }

  static constexpr std::int64_t tile_parameters = 4;

 private:
  static Region on(Tier tier, std::uint64_t bytes) { return {tier, 0, 0, bytes}; }

  void add_shard(Role role) {
    Shard shard;
    shard.role = role;
    shard.block = 0;
    shard.dtype = role == Role::weight ? DType::bf16 : DType::f32;
    shard.count = tile_parameters;
    program_.add(std::move(shard));
  }
  OpId move(OpKind kind, Lane lane, Region source, Region target, std::vector<Edge> after) {
    return add(kind, lane, {{{}, source, Access::read}, {{}, target, Access::produce}},
               std::move(after));
  }

  Program program_;
  Plan plan_;
  Schedule schedule_;
};

}  // namespace strata::testing
