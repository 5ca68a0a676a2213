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

// In order, all of one after all of those before: the bits of the norm.
double sum_of(std::span<const TensorView> values) {
  double sum = 0;
  for (const TensorView& view : values) {
    const double* data = view.as<double>();
    for (std::int64_t i = 0; i < view.count(); ++i) sum += data[i];
  }
  return sum;
}

std::span<const TensorView> all_but_last(const BoundOp& bound) {
  return std::span(bound.views).first(bound.views.size() - 1);
}

// What the calling thread issues meanwhile is the op's, for a profiler.
class OpRange {
 public:
  OpRange(Device& device, const char* name) : device_(device) { device_.begin_range(name); }
  OpRange(const OpRange&) = delete;
  OpRange& operator=(const OpRange&) = delete;
  ~OpRange() { device_.end_range(); }

 private:
  Device& device_;
};

bool is_collective(const Op& op) { return op.kind == OpKind::gather || op.kind == OpKind::reduce; }

UpdateScalars scalars_of(const TensorView& view) {
  UpdateScalars scalars;
  std::memcpy(&scalars, view.data, sizeof scalars);
  return scalars;
}

}  // namespace

OpRunner::OpRunner(const Program& program, const Plan& plan, const ExecutorParts& parts,
                   const ExecutorOptions& options)
    : program_(program),
      parts_(parts),
      poison_(options.poison),
      before_op_(options.before_op),
      bound_(program, plan, *parts.memory, parts.store),
      collectives_(program, parts.comm, *parts.device) {
  for (int lane = 0; lane < num_lanes; ++lane)
    streams_.push_back(parts.device->make_stream(lane_name(lane_at(lane))));
}

Kernels& OpRunner::kernels(const Op& op) const {
  return op.lane == Lane::compute ? *parts_.device_kernels : *parts_.host_kernels;
}

bool OpRunner::is_asynchronous(const Op& op) const {
  if (parts_.device->completion() == Completion::on_return) return false;
  switch (op.kind) {
    case OpKind::feed:
    case OpKind::copy:
    case OpKind::run:
      return true;
    case OpKind::accumulate:
    case OpKind::square:
    case OpKind::update:
      return op.lane == Lane::compute;
    case OpKind::gather:
    case OpKind::reduce:
      return parts_.comm->completion() == Completion::on_stream;
    default:
      return false;
  }
}

bool OpRunner::looks_at_host(const Op& op) const {
  return op.kind == OpKind::update && op.operands.back().what.content == Content::partials;
}

void OpRunner::issue(const Op& op, StepState& step) {
  const OpRange range(*parts_.device, op.segment.valid() ? program_.segment(op.segment).name.c_str()
                                                         : op_kind_name(op.kind).data());
  carry_out(op, step);
}

void OpRunner::drain_streams() noexcept {
  for (const auto& stream : streams_) {
    try {
      stream->synchronize();
    } catch (const std::exception&) {  // The failure that made us drain is the one to tell of.
    }
  }
}

void OpRunner::run(const Op& op, StepState& step) {
  issue(op, step);
  stream(op).synchronize();
  confirm(op);
}

void OpRunner::confirm(const Op& op) const {
  if (is_collective(op) && is_asynchronous(op)) collectives_.confirm();
}

void OpRunner::carry_out(const Op& op, StepState& step) {
  begin(op);
  const BoundOp& bound = this->bound(op, step);
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
    case OpKind::sum:
      *bound.views.back().as<double>() = sum_of(all_but_last(bound));
      break;
    case OpKind::norm:
      norm(bound, step);
      break;
    case OpKind::update:
      update(op, bound, step);
      break;
    case OpKind::gather:
      step.comm_bytes += collectives_.gather(bound, stream(op));
      break;
    case OpKind::reduce:
      step.comm_bytes += collectives_.reduce(bound, stream(op));
      break;
    case OpKind::report:
      report(op, bound, step);
      break;
    case OpKind::save:
      save(op, bound);
      break;
    case OpKind::commit:
      ensure(parts_.committer != nullptr);
      parts_.committer->commit(*step.args, scalars_of(bound.views.back()).apply != 0);
      break;
  }
}

void OpRunner::start_transfer(const Op& op, StepState& step, IoCompletion& completion) {
  begin(op);
  const BoundOp& transfer = bound(op, step);
  count_bytes(op, transfer.tile_memory.size(), step);
  parts_.store->submit(io_op(op), transfer.store_tile, transfer.tile_memory, priority_of(op),
                       completion);
}

void OpRunner::begin(const Op& op) const {
  if (before_op_) before_op_(op);
  if (poison_ == Poison::off) return;
  for (const Operand& operand : op.operands) {
    const bool written_whole =
        operand.access == Access::produce || operand.access == Access::accumulate;
    if (written_whole && operand.region.tier != Tier::nvme) poison(op, op.operands, operand.region);
  }
}

// In the op's order: on its stream, or at once.
void OpRunner::fill(const Op& op, const Region& region) const {
  std::byte* const memory = address(*parts_.memory, region);
  if (!is_asynchronous(op) && region.tier == Tier::host) {
    std::memset(memory, 0xff, region.bytes);
    return;
  }
  parts_.device->fill(memory, region.bytes, std::byte{0xff}, stream(op));
  if (!is_asynchronous(op)) stream(op).synchronize();
}

// All bits set is NaN in every floating dtype: what an op forgets to write shows up in the loss.
// What it reads stays: a rank's slice may lie inside the whole that it is gathered to.
void OpRunner::poison(const Op& op, std::span<const Operand> operands, const Region& region) const {
  const auto kept = std::ranges::find_if(operands, [&](const Operand& operand) {
    return (operand.access == Access::read || operand.access == Access::update) &&
           operand.region.overlaps(region);
  });
  if (kept == operands.end()) return fill(op, region);
  const auto others = operands.subspan(static_cast<std::size_t>(kept - operands.begin()) + 1);
  const std::uint64_t begin = kept->region.offset, end = kept->region.end();
  if (begin > region.offset) poison(op, others, region.part(0, begin - region.offset));
  if (end < region.end()) poison(op, others, region.part(end - region.offset, region.end() - end));
}

void OpRunner::feed(const Op& op, StepState& step) {
  const Operand& target = op.operands[0];
  const Shard& shard = program_.shard(target.what.shard);
  const auto& inputs = step.args->inputs;
  ensure(shard.micro_batch >= 0 && static_cast<std::size_t>(shard.micro_batch) < inputs.size());
  const std::span<const std::byte> source = inputs[static_cast<std::size_t>(shard.micro_batch)];
  ensure(source.size() == target.region.bytes);
  parts_.device->copy(address(*parts_.memory, target.region), source.data(), source.size(),
                      CopyKind::host_to_device, stream(op));
}

void OpRunner::copy(const Op& op) {
  const Region &source = op.operands[0].region, &target = op.operands[1].region;
  const CopyKind kind = source.tier == target.tier    ? CopyKind::device_to_device
                        : target.tier == Tier::device ? CopyKind::host_to_device
                                                      : CopyKind::device_to_host;
  parts_.device->copy(address(*parts_.memory, target), address(*parts_.memory, source),
                      source.bytes, kind, stream(op));
}

// Partial sums are added in the order of shards and elements, whatever the tiles: one norm for
// every placement.
void OpRunner::norm(const BoundOp& bound, StepState& step) {
  const double sum = sum_of(all_but_last(bound));
  const UpdateHyper& hyper = step.args->hyper;
  UpdateScalars scalars;
  scalars.grad_norm = std::sqrt(sum);
  scalars.apply = std::isfinite(sum) ? 1 : 0;
  if (hyper.max_grad_norm > 0) {  // torch.nn.utils.clip_grad_norm_
    const double factor = static_cast<double>(hyper.max_grad_norm) / (scalars.grad_norm + 1e-6);
    scalars.clip_factor = static_cast<float>(std::min(1.0, factor));
  }
  step.scalars = scalars;
  std::memcpy(bound.views.back().data, &scalars, sizeof scalars);
}

// The scalars of a device that is asynchronous are on their way to it, and out of the host's reach.
UpdateScalars OpRunner::gate(const Op& op, const BoundOp& bound, const StepState& step) const {
  if (op.operands.back().what.content == Content::scalars)
    return is_asynchronous(op) ? step.scalars : scalars_of(bound.views.back());
  if (!std::isfinite(sum_of({&bound.views.back(), 1})))
    throw Error(
        "the gradient is not finite; with updates during backward, tiles updated before it keep "
        "their new values. "
        "Lower the learning rate, or use offload.update_order: deferred, which updates nothing in "
        "such a step");
  return {};
}

void OpRunner::update(const Op& op, const BoundOp& bound, StepState& step) {
  const Segment& segment = program_.segment(op.segment);
  const UpdateScalars scalars = gate(op, bound, step);
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

void OpRunner::save(const Op& op, const BoundOp& bound) {
  ensure(parts_.sink != nullptr);
  const auto bytes = [](const TensorView& view) {
    return std::span<const std::byte>(view.as<std::byte>(), static_cast<std::size_t>(view.bytes()));
  };
  const TileRef& what = op.operands[0].what;
  parts_.sink->save(what.shard, what.tile, bytes(bound.views[0]),
                    bound.views.size() > 1 ? bytes(bound.views[1]) : std::span<const std::byte>{});
}

// Of several ranks: all of one rank after all of the ranks before.
void OpRunner::report(const Op& op, const BoundOp& bound, StepState& step) {
  StepResult& result = step.result;
  result.index = step.args->index;
  result.loss = 0;
  result.micro_batch_losses.clear();
  for (std::size_t i = 0; i < op.operands.size(); ++i) {
    if (op.operands[i].what.content == Content::scalars) {
      const UpdateScalars scalars = scalars_of(bound.views[i]);
      result.grad_norm = scalars.grad_norm;
      result.finite = std::isfinite(scalars.grad_norm);
      result.applied = scalars.apply != 0;
      continue;
    }
    const std::span losses(bound.views[i].as<double>(),
                           static_cast<std::size_t>(bound.views[i].count()));
    result.micro_batch_losses.insert(result.micro_batch_losses.end(), losses.begin(), losses.end());
  }
  for (const double loss : result.micro_batch_losses) result.loss += loss;
}

std::string OpRunner::failure(const Op& op, const StepState& step, const std::string& why) const {
  return fmt::format("step {}: {}: {}", step.args->index + 1, describe(op), why);
}

std::string OpRunner::describe(const Op& op) const {
  std::string text = fmt::format("{} on lane {}", op_kind_name(op.kind), lane_name(op.lane));
  if (op.segment.valid()) text += fmt::format(" for '{}'", program_.segment(op.segment).name);
  if (op.kind == OpKind::commit) return text;  // of all
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
