#include "runtime/op_runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "strata/core/error.hpp"

namespace strata {
namespace {

Lane lane_at(int index) { return static_cast<Lane>(index); }

IoPriority priority_of(const Op& op) {
  switch (op.lane) {
    case Lane::read:
      return IoPriority::now;
    case Lane::state_read:
      return IoPriority::prefetch;
    default:
      return IoPriority::write_back;
  }
}

IoOp io_op(const Op& op) { return op.kind == OpKind::read ? IoOp::read : IoOp::write; }

void count_bytes(const Op& op, std::uint64_t bytes, StepState& step) {
  (op.kind == OpKind::read ? step.nvme_bytes_read : step.nvme_bytes_written) += bytes;
}

bool same(const Region& one, const Region& other) {
  return one.tier == other.tier && one.drive == other.drive && one.offset == other.offset &&
         one.bytes == other.bytes;
}

void check_executable(const Program& program) {
  if (program.world == 1) return;
  throw ConfigError(
      fmt::format("the plan is for {} ranks, which can be planned but not yet run: train with one",
                  program.world));
}

double sum_of(const TensorView& values) {
  double sum = 0;
  const double* data = values.as<double>();
  for (std::int64_t i = 0; i < values.count(); ++i) sum += data[i];
  return sum;
}

}  // namespace

OpRunner::OpRunner(const Program& program, const Plan& plan, const ExecutorParts& parts,
                   Poison poison)
    : program_(program), parts_(parts), poison_(poison) {
  check_executable(program);
  const NvmeTiles nvme(program, plan);
  ensure(nvme.tiles().empty() ||
         (parts.store != nullptr && parts.store->num_tiles() == std::ssize(nvme.tiles())));
  for (const Schedule& schedule : plan.schedules) {
    std::vector<Bound> bound;
    for (const Op& op : schedule.ops) bound.push_back(bind(op, plan, nvme));
    bound_.push_back(std::move(bound));
  }
  for (int lane = 0; lane < num_lanes; ++lane)
    streams_.push_back(parts.device->make_stream(lane_name(lane_at(lane))));
}

std::byte* OpRunner::address(const Region& region) const {
  switch (region.tier) {
    case Tier::device:
      return parts_.memory->device_address(region.offset);
    case Tier::host:
      return parts_.memory->host_address(region.offset);
    case Tier::nvme:
      return nullptr;
  }
  return nullptr;
}

TensorView OpRunner::view(const Operand& operand) const {
  const auto bytes = static_cast<std::int64_t>(operand.region.bytes);
  std::byte* data = address(operand.region);
  switch (operand.what.content) {
    case Content::partials:
    case Content::rank_sums:
    case Content::rank_metrics:
      return {data, DType::f64, {bytes / 8}};
    case Content::scalars:
    case Content::scratch:
      return {data, DType::u8, {bytes}};
    case Content::contribution:
    case Content::rank_contribution:
      return {
          data, program_.contribution_dtype, {bytes / dtype_bytes(program_.contribution_dtype)}};
    case Content::value:
      break;
  }
  const auto [shard, tile, content] = operand.what;
  const std::int64_t count =
      tile < 0 ? program_.shard(shard).count : program_.tile_count(shard, tile);
  const TensorView value{data, program_.shard(shard).dtype, {count}};
  ensure(value.bytes() == bytes);
  return value;
}

OpRunner::Bound OpRunner::bind(const Op& op, const Plan& plan, const NvmeTiles& nvme) const {
  Bound bound;
  for (const Operand& operand : op.operands) {
    const TensorView v = view(operand);
    if (operand.what.content == Content::scratch)
      bound.scratch = {v.as<std::byte>(), operand.region.bytes};
    else
      bound.views.push_back(v);
  }
  if (op.kind == OpKind::read || op.kind == OpKind::write) bind_transfer(op, plan, nvme, bound);
  return bound;
}

// A store moves whole tiles: so must every transfer of a plan.
void OpRunner::bind_transfer(const Op& op, const Plan& plan, const NvmeTiles& nvme,
                             Bound& bound) const {
  const bool reads = op.kind == OpKind::read;
  const Operand& disk = op.operands[reads ? 0 : 1];
  const int tile = std::max(disk.what.tile, 0);
  const Region& home = plan.homes[disk.what.shard.index()][static_cast<std::size_t>(tile)];
  ensure(same(disk.region, home));
  bound.store_tile = nvme.index(disk.what.shard, tile);
  bound.tile_memory = {address(op.operands[reads ? 1 : 0].region),
                       parts_.store->padded_bytes(bound.store_tile)};
}

Kernels& OpRunner::kernels(const Op& op) const {
  return op.lane == Lane::compute ? *parts_.device_kernels : *parts_.host_kernels;
}

void OpRunner::run(const Op& op, StepState& step) {
  try {
    carry_out(op, step);
  } catch (const std::exception& error) {
    throw Error(failure(op, step, error.what()));
  }
}

void OpRunner::carry_out(const Op& op, StepState& step) {
  if (poison_ == Poison::on) poison(op);
  const Bound& bound = this->bound(op, step);
  switch (op.kind) {
    case OpKind::feed:
      feed(op, step);
      break;
    case OpKind::copy:
      copy(op);
      break;
    case OpKind::read:
    case OpKind::write:
      count_bytes(op, bound.tile_memory.size(), step);
      parts_.store->transfer(io_op(op), bound.store_tile, bound.tile_memory);
      break;
    case OpKind::run:
      parts_.model->run(program_.segment(op.segment), {bound.views, bound.scratch}, *step.args,
                        stream(op));
      break;
    case OpKind::accumulate:
      kernels(op).accumulate(bound.views[0], bound.views[1],
                             op.first_contribution ? Accumulate::no : Accumulate::yes, stream(op));
      break;
    case OpKind::square:
      kernels(op).square_sums(bound.views[0], bound.views[1], stream(op));
      break;
    case OpKind::norm:
      norm(op, bound, step);
      break;
    case OpKind::update:
      update(op, bound, step);
      break;
    case OpKind::gather:
    case OpKind::reduce:
    case OpKind::sum:
      ensure(false);  // Of several ranks, whose Programs the constructor refuses.
      break;
    case OpKind::report:
      report(op, bound, step);
      break;
  }
  stream(op).synchronize();
}

void OpRunner::start_transfer(const Op& op, StepState& step, IoCompletion& completion) {
  if (poison_ == Poison::on) poison(op);
  const Bound& transfer = bound(op, step);
  count_bytes(op, transfer.tile_memory.size(), step);
  parts_.store->submit(io_op(op), transfer.store_tile, transfer.tile_memory, priority_of(op),
                       completion);
}

// All bits set is NaN in every floating dtype: what an op forgets to write shows up in the loss.
void OpRunner::poison(const Op& op) const {
  for (const Operand& operand : op.operands) {
    const bool written_whole =
        operand.access == Access::produce || operand.access == Access::accumulate;
    if (written_whole && operand.region.tier != Tier::nvme)
      std::memset(address(operand.region), 0xff, operand.region.bytes);
  }
}

void OpRunner::feed(const Op& op, StepState& step) {
  const Operand& target = op.operands[0];
  const Shard& shard = program_.shard(target.what.shard);
  const auto& inputs = step.args->inputs;
  ensure(shard.micro_batch >= 0 && static_cast<std::size_t>(shard.micro_batch) < inputs.size());
  const std::span<const std::byte> source = inputs[static_cast<std::size_t>(shard.micro_batch)];
  ensure(source.size() == target.region.bytes);
  parts_.device->copy(address(target.region), source.data(), source.size(),
                      CopyKind::host_to_device, stream(op));
}

void OpRunner::copy(const Op& op) {
  const Region &source = op.operands[0].region, &target = op.operands[1].region;
  const CopyKind kind = source.tier == target.tier    ? CopyKind::device_to_device
                        : target.tier == Tier::device ? CopyKind::host_to_device
                                                      : CopyKind::device_to_host;
  parts_.device->copy(address(target), address(source), source.bytes, kind, stream(op));
}

// Partial sums are added in the order of shards and elements, whatever the tiles: one norm for
// every placement.
void OpRunner::norm(const Op&, const Bound& bound, StepState& step) {
  double sum = 0;
  for (std::size_t i = 0; i + 1 < bound.views.size(); ++i) {
    const double* partials = bound.views[i].as<double>();
    for (std::int64_t j = 0; j < bound.views[i].count(); ++j) sum += partials[j];
  }
  const UpdateHyper& hyper = step.args->hyper;
  UpdateScalars scalars;
  scalars.grad_norm = std::sqrt(sum);
  scalars.apply = std::isfinite(sum) ? 1 : 0;
  if (hyper.max_grad_norm > 0) {  // torch.nn.utils.clip_grad_norm_
    const double factor = static_cast<double>(hyper.max_grad_norm) / (scalars.grad_norm + 1e-6);
    scalars.clip_factor = static_cast<float>(std::min(1.0, factor));
  }
  std::memcpy(bound.views.back().data, &scalars, sizeof scalars);
}

UpdateScalars OpRunner::gate(const Op& op, const Bound& bound) const {
  UpdateScalars scalars;
  if (op.operands.back().what.content == Content::scalars) {
    std::memcpy(&scalars, bound.views.back().data, sizeof scalars);
  } else if (!std::isfinite(sum_of(bound.views.back()))) {
    throw Error(
        "the gradient is not finite; with updates during backward, tiles updated before it keep "
        "their new values. "
        "Lower the learning rate, or use offload.update_order: deferred, which updates nothing in "
        "such a step");
  }
  return scalars;
}

void OpRunner::update(const Op& op, const Bound& bound, StepState& step) {
  const Segment& segment = program_.segment(op.segment);
  const UpdateScalars scalars = gate(op, bound);
  TileUpdate tile;
  tile.segment = &segment;
  tile.block = segment.block;
  const TileRef& gradient = op.operands[0].what;
  tile.begin = program_.place_begin(gradient.shard, program_.place(gradient.shard, gradient.tile));
  for (std::size_t i = 0; i + 1 < op.operands.size(); ++i)  // the last is the gate
    tile.operand(program_.shard(op.operands[i].what.shard).role) = bound.views[i];
  const bool on_device = op.lane == Lane::compute && parts_.device_optimizer != nullptr;
  UpdateRunner& optimizer = on_device ? *parts_.device_optimizer : *parts_.optimizer;
  optimizer.update(tile, step.args->hyper, scalars, stream(op));
}

void OpRunner::report(const Op& op, const Bound& bound, StepState& step) {
  StepResult& result = step.result;
  result.index = step.args->index;
  result.loss = 0;
  result.micro_batch_losses.clear();
  for (std::size_t i = 0; i < op.operands.size(); ++i) {
    if (op.operands[i].what.content == Content::scalars) {
      UpdateScalars scalars;
      std::memcpy(&scalars, bound.views[i].data, sizeof scalars);
      result.grad_norm = scalars.grad_norm;
      result.finite = std::isfinite(scalars.grad_norm);
      result.applied = scalars.apply != 0;
      continue;
    }
    const double loss = *bound.views[i].as<double>();
    result.micro_batch_losses.push_back(loss);
    result.loss += loss;
  }
}

std::string OpRunner::failure(const Op& op, const StepState& step, const std::string& why) const {
  return fmt::format("step {}: {}: {}", step.args->index + 1, describe(op), why);
}

std::string OpRunner::describe(const Op& op) const {
  std::string text = fmt::format("{} on lane {}", op_kind_name(op.kind), lane_name(op.lane));
  if (op.segment.valid()) text += fmt::format(" for '{}'", program_.segment(op.segment).name);
  for (const Operand& operand : op.operands) {
    if (!operand.what.shard.valid()) continue;
    text += fmt::format(", '{}'", program_.shard(operand.what.shard).name);
    if (operand.what.tile >= 0 || is_nvme_lane(op.lane))
      text += fmt::format(" tile {}", std::max(operand.what.tile, 0));
    break;
  }
  return text;
}

}  // namespace strata
