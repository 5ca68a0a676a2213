// Seconds and bytes of each op; docs/design/simulator.md has the formulas.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "plan/op_demand.hpp"
#include "plan/rank_rates.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

// Every operand read once, written once, or both.
double crossed_bytes(const Op& op) {
  double bytes = 0;
  for (const Operand& operand : op.operands)
    bytes += static_cast<double>(operand.region.bytes) * (operand.access == Access::update ? 2 : 1);
  return bytes;
}

std::size_t num_drives(const Plan& plan, const Schedule& schedule) {
  std::size_t count = plan.drive_bytes.size();
  for (const Op& op : schedule.ops)
    for (const Operand& operand : op.operands)
      if (operand.region.tier == Tier::nvme)
        count = std::max(count, std::size_t{operand.region.drive} + 1);
  return count;
}

// A store's commit: flushes of its drives side by side, then of the manifest and of its folder. A
// drive that has to empty its cache takes some milliseconds for each; what the state's bytes take
// was taken by the writes, which bypass the page cache.
constexpr double commit_seconds = 0.01;

class CostModel {
 public:
  CostModel(const Program& program, const Plan& plan, const Schedule& schedule,
            const MachineProfile& machine)
      : program_(program),
        plan_(plan),
        rates_(machine, num_drives(plan, schedule)),
        saving_drive_(machine.saving_drive()),
        work_seconds_(program.works.size(), not_known) {}

  OpDemand demand(const Op& op) {
    OpDemand demand = told_apart(op);
    demand.seconds =
        std::max({demand.seconds, demand.drive_seconds, *std::ranges::max_element(demand.busy)});
    return demand;
  }

 private:
  static constexpr double not_known = -1;

  OpDemand told_apart(const Op& op) {
    switch (op.kind) {
      case OpKind::feed:
        return link(Resource::up, op);
      case OpKind::copy:
        return copy(op);
      case OpKind::read:
        return drive(Resource::nvme_read, op.operands.front().region.drive, op);
      case OpKind::write:
        return drive(Resource::nvme_write, op.operands.back().region.drive, op);
      case OpKind::run:
        return run(op);
      case OpKind::update:
        return update(op);
      case OpKind::gather:
        return collective(op, rates_.gather());
      case OpKind::reduce:
        return collective(op, rates_.reduce());
      case OpKind::save:
        return save(op);
      case OpKind::commit:
        return {.seconds = commit_seconds};
      default:  // passes over what they read and write
        return pass(op);
    }
  }

  static void use(OpDemand& demand, Resource resource, double bytes, double seconds) {
    demand.busy[static_cast<std::size_t>(resource)] += seconds;
    demand.bytes[static_cast<std::size_t>(resource)] += static_cast<std::uint64_t>(bytes);
  }

  // Bytes by DMA between host memory and something else.
  void cross_host_memory(OpDemand& demand, double bytes) const {
    use(demand, Resource::host_memory, bytes, bytes / rates_.host_memory());
  }

  OpDemand link(Resource direction, const Op& op) const {
    OpDemand demand;
    const auto amount = static_cast<double>(link_bytes(op, plan_.limits.io_alignment));
    const double rate = direction == Resource::up ? rates_.up() : rates_.down();
    use(demand, direction, amount, amount / rate);
    cross_host_memory(demand, amount);
    return demand;
  }

  OpDemand copy(const Op& op) const {
    const Region &source = op.operands.front().region, &target = op.operands.back().region;
    if (source.tier != target.tier)
      return link(target.tier == Tier::device ? Resource::up : Resource::down, op);
    OpDemand demand;
    const double crossed = 2 * static_cast<double>(source.bytes);
    if (source.tier == Tier::host)
      cross_host_memory(demand, crossed);
    else  // Takes comm's time, but crosses no link: link_bytes() are none.
      use(demand, Resource::comm, 0,
          rates_.seconds_per_call() + crossed / rates_.accelerator_memory());
    return demand;
  }

  OpDemand drive(Resource direction, std::uint8_t number, const Op& op) const {
    OpDemand demand;
    const bool reads = direction == Resource::nvme_read;
    const auto bytes = static_cast<double>(link_bytes(op, plan_.limits.io_alignment));
    demand.drive = number;
    demand.drive_seconds = bytes / (reads ? rates_.drive_read(number) : rates_.drive_write(number));
    const double all = reads ? rates_.all_drives_read() : rates_.all_drives_write();
    use(demand, direction, bytes, bytes / all);
    cross_host_memory(demand, bytes);
    return demand;
  }

  // Read, written to a buffer as a checkpoint has it, and that to a drive. A machine without drives
  // says nothing of where checkpoints go.
  OpDemand save(const Op& op) const {
    OpDemand demand;
    const TileRef& tile = op.operands.front().what;
    const Shard& shard = program_.shard(tile.shard);
    const DType dtype = shard.dtype == DType::u16 ? DType::f32 : shard.dtype;  // joined
    const auto bytes =
        static_cast<double>(storage_bytes(dtype, program_.tile_count(tile.shard, tile.tile)));
    cross_host_memory(demand, crossed_bytes(op) + 2 * bytes);
    demand.drive = saving_drive_;
    if (demand.drive == no_drive) return demand;
    const auto drive = static_cast<std::size_t>(saving_drive_);
    demand.drive_seconds = bytes / rates_.drive_save(drive);
    const double all = rates_.all_drives_write(), own = rates_.drive_write(drive);
    const double part = all > 0 ? std::min(1.0, own / all) : 1;
    use(demand, Resource::nvme_write, bytes, demand.drive_seconds * part);
    return demand;
  }

  OpDemand run(const Op& op) {
    OpDemand demand;
    const Segment& segment = program_.segment(op.segment);
    if (segment.work < 0) return demand;
    const auto work = static_cast<std::size_t>(segment.work);
    double& seconds = work_seconds_[work];
    if (seconds == not_known) seconds = rates_.seconds(program_.works[work]);
    double bytes = 0;
    for (const KernelWork& kernel : program_.works[work].kernels)
      bytes += kernel.bytes * kernel.calls;
    use(demand, Resource::compute, bytes, seconds);
    demand.flops = program_.works[work].flops();
    return demand;
  }

  // A pass over memory beside the cores or the accelerator that makes it.
  OpDemand pass(const Op& op) const {
    OpDemand demand;
    const double bytes = crossed_bytes(op);
    if (op.lane == Lane::compute) {
      use(demand, Resource::compute, bytes,
          rates_.seconds_per_call() + bytes / rates_.accelerator_memory());
      return demand;
    }
    const double seconds = bytes / rates_.host_memory();
    use(demand, Resource::update, bytes, seconds);
    use(demand, Resource::host_memory, bytes, seconds);
    return demand;
  }

  OpDemand update(const Op& op) {
    OpDemand demand = pass(op);
    if (op.lane == Lane::compute) return demand;
    const double rate = update_rate(op);
    double& seconds = demand.busy[static_cast<std::size_t>(Resource::update)];
    if (rate > 0) seconds = std::max(seconds, parameters(op) / rate);
    return demand;
  }

  double parameters(const Op& op) const {
    const TileRef& tile = op.operands.front().what;
    return static_cast<double>(program_.tile_count(tile.shard, std::max(0, tile.tile)));
  }

  double update_rate(const Op& op) {
    DType gradient = DType::u8, master = DType::u8, moments = DType::u8;
    for (const Operand& operand : op.operands) {
      if (operand.what.content != Content::value) continue;
      const Shard& shard = program_.shard(operand.what.shard);
      if (shard.role == Role::gradient) gradient = shard.dtype;
      if (shard.role == Role::master) master = shard.dtype;
      if (shard.role == Role::moment1) moments = shard.dtype;
    }
    const auto [known, is_new] = update_rates_.try_emplace({gradient, master, moments}, 0);
    if (is_new) known->second = rates_.update(update_layout(gradient, master, moments));
    return known->second;
  }

  OpDemand collective(const Op& op, double rate) const {
    OpDemand demand;
    const auto bytes = static_cast<double>(link_bytes(op, plan_.limits.io_alignment));
    use(demand, Resource::comm, bytes, rates_.seconds_per_collective() + bytes / rate);
    return demand;
  }

  const Program& program_;
  const Plan& plan_;
  RankRates rates_;
  const int saving_drive_;
  std::vector<double> work_seconds_;  // by index of Program::works
  std::map<std::tuple<DType, DType, DType>, double> update_rates_;
};

}  // namespace

std::string update_layout(DType gradient, DType master, DType moments) {
  return fmt::format("{}/{}/{}", dtype_name(gradient),
                     master == DType::u16 ? "split" : dtype_name(master), dtype_name(moments));
}

const Schedule& schedule_named(const Plan& plan, std::string_view name) {
  if (const Schedule* schedule = plan.schedule(name)) return *schedule;
  throw ConfigError(fmt::format("the plan has no schedule '{}'", name));
}

std::vector<OpDemand> op_demands(const Program& program, const Plan& plan, std::string_view name,
                                 const MachineProfile& machine) {
  const Schedule& schedule = schedule_named(plan, name);
  CostModel model(program, plan, schedule, machine);
  std::vector<OpDemand> demands;
  demands.reserve(schedule.ops.size());
  for (const Op& op : schedule.ops) demands.push_back(model.demand(op));
  return demands;
}

std::vector<OpCost> op_costs(const Program& program, const Plan& plan, std::string_view schedule,
                             const MachineProfile& machine) {
  std::vector<OpCost> costs;
  for (const OpDemand& demand : op_demands(program, plan, schedule, machine)) {
    OpCost cost{demand.seconds, {}};
    if (demand.seconds > 0)
      std::ranges::transform(demand.busy, cost.share.begin(),
                             [&](double busy) { return busy / demand.seconds; });
    costs.push_back(cost);
  }
  return costs;
}

}  // namespace strata
