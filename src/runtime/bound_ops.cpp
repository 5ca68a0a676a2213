#include "runtime/bound_ops.hpp"

#include <algorithm>

#include "strata/core/error.hpp"

namespace strata {
namespace {

bool same(const Region& one, const Region& other) {
  return one.tier == other.tier && one.drive == other.drive && one.offset == other.offset &&
         one.bytes == other.bytes;
}

}  // namespace

std::byte* address(const TierMemory& memory, const Region& region) {
  switch (region.tier) {
    case Tier::device:
      return memory.device_address(region.offset);
    case Tier::host:
      return memory.host_address(region.offset);
    case Tier::nvme:
      break;
  }
  return nullptr;
}

BoundOps::BoundOps(const Program& program, const Plan& plan, const TierMemory& memory,
                   const ShardStore* store)
    : program_(program), memory_(memory), store_(store) {
  const NvmeTiles nvme(program, plan);
  ensure(nvme.tiles().empty() ||
         (store != nullptr && store->num_tiles() == std::ssize(nvme.tiles())));
  for (const Schedule& schedule : plan.schedules) {
    std::vector<BoundOp> bound;
    for (const Op& op : schedule.ops) bound.push_back(bind(op, plan, nvme));
    bound_.push_back(std::move(bound));
  }
}

BoundOp BoundOps::bind(const Op& op, const Plan& plan, const NvmeTiles& nvme) const {
  BoundOp bound;
  for (const Operand& operand : op.operands) {
    const TensorView v = view(op, operand);
    if (operand.what.content == Content::scratch)
      bound.scratch = {v.as<std::byte>(), operand.region.bytes};
    else
      bound.views.push_back(v);
  }
  if (op.kind == OpKind::read || op.kind == OpKind::write) bind_transfer(op, plan, nvme, bound);
  if (op.kind == OpKind::reduce) bound.padding = padding_of(op.operands[1]);
  return bound;
}

// A store moves whole tiles: so must every transfer of a plan.
void BoundOps::bind_transfer(const Op& op, const Plan& plan, const NvmeTiles& nvme,
                             BoundOp& bound) const {
  const bool reads = op.kind == OpKind::read;
  const Operand& disk = op.operands[reads ? 0 : 1];
  const int tile = std::max(disk.what.tile, 0);
  const Region& home = plan.homes[disk.what.shard.index()][static_cast<std::size_t>(tile)];
  ensure(same(disk.region, home));
  bound.store_tile = nvme.index(disk.what.shard, tile);
  bound.tile_memory = {address(memory_, op.operands[reads ? 1 : 0].region),
                       store_->padded_bytes(bound.store_tile)};
}

TensorView BoundOps::view(const Op& op, const Operand& operand) const {
  const auto bytes = static_cast<std::int64_t>(operand.region.bytes);
  std::byte* data = address(memory_, operand.region);
  switch (operand.what.content) {
    case Content::partials:
    case Content::rank_sums:
    case Content::rank_metrics:
      return {data, DType::f64, {bytes / 8}};
    case Content::scalars:
    case Content::scratch:
      return {data, DType::u8, {bytes}};
    case Content::value:
    case Content::contribution:
    case Content::rank_contribution:
      break;
  }
  const DType dtype = operand.what.content == Content::value
                          ? program_.shard(operand.what.shard).dtype
                          : program_.contribution_dtype;
  const TensorView all{data, dtype, {elements(operand.what)}};
  ensure(all.bytes() == bytes);
  return op.kind == OpKind::run ? of_model(all, operand.what) : all;
}

std::int64_t BoundOps::elements(const TileRef& what) const {
  switch (what.tile) {
    case all_slices:
      return program_.whole_elements(what.shard);
    case own_slice:
      return program_.slice_elements(what.shard);
    case whole_shard:
      return program_.shard(what.shard).count;
    default:
      return program_.tile_count(what.shard, what.tile);
  }
}

// A model knows the vectors of its blocks, and nothing of the padding behind them.
TensorView BoundOps::of_model(TensorView whole, const TileRef& what) const {
  ensure(what.tile < 0);
  const std::int64_t count = program_.model_elements(what.shard);
  return count == whole.count() ? whole : whole.slice(0, {count});
}

std::span<std::byte> BoundOps::padding_of(const Operand& slice) const {
  ensure(slice.region.tier == Tier::device);
  const std::int64_t held = program_.slice_elements(slice.what.shard);
  const std::int64_t before = program_.rank * held;
  const std::int64_t used =
      std::clamp<std::int64_t>(program_.model_elements(slice.what.shard) - before, 0, held);
  const auto used_bytes =
      static_cast<std::size_t>(storage_bytes(program_.contribution_dtype, used));
  return std::span(address(memory_, slice.region), slice.region.bytes).subspan(used_bytes);
}

}  // namespace strata
