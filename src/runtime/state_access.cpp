#include "strata/runtime/state_access.hpp"

#include <fmt/format.h>

#include "strata/core/error.hpp"

namespace strata {

StateAccess::StateAccess(const Program& program, const Plan& plan, Device& device,
                         TierMemory& memory, ShardStore* store)
    : program_(program),
      plan_(plan),
      nvme_(program, plan),
      device_(device),
      memory_(memory),
      store_(store),
      stream_(device.make_stream("state access")) {}

std::span<const std::byte> StateAccess::read(ShardId shard, int tile) {
  const Region& from = home(shard, tile);
  std::byte* buffer = memory_.host_address(plan_.transfer.offset);
  switch (from.tier) {
    case Tier::host:
      return {memory_.host_address(from.offset), from.bytes};
    case Tier::device:
      device_.use_on_this_thread();
      device_.copy(buffer, memory_.device_address(from.offset), from.bytes,
                   CopyKind::device_to_host, *stream_);
      stream_->synchronize();
      break;
    case Tier::nvme:
      transfer(IoOp::read, shard, tile);
      break;
  }
  return {buffer, from.bytes};
}

void StateAccess::write(ShardId shard, int tile,
                        const std::function<void(std::span<std::byte>)>& fill) {
  const Region& to = home(shard, tile);
  if (to.tier == Tier::host) return fill({memory_.host_address(to.offset), to.bytes});
  std::byte* buffer = memory_.host_address(plan_.transfer.offset);
  fill({buffer, to.bytes});
  if (to.tier == Tier::nvme) return transfer(IoOp::write, shard, tile);
  device_.use_on_this_thread();
  device_.copy(memory_.device_address(to.offset), buffer, to.bytes, CopyKind::host_to_device,
               *stream_);
  stream_->synchronize();
}

const Region& StateAccess::home(ShardId shard, int tile) const {
  const Region& home = plan_.homes[shard.index()][static_cast<std::size_t>(tile)];
  ensure(home.bytes <= plan_.transfer.bytes);
  return home;
}

void StateAccess::transfer(IoOp op, ShardId shard, int tile) {
  const int index = nvme_.index(shard, tile);
  const std::uint64_t bytes = store_->padded_bytes(index);
  ensure(bytes <= plan_.transfer.bytes);
  try {
    store_->transfer(op, index, {memory_.host_address(plan_.transfer.offset), bytes});
  } catch (const Error& error) {
    throw Error(fmt::format("cannot {} '{}' tile {}: {}", op == IoOp::read ? "load" : "store",
                            program_.shard(shard).name, tile, error.what()));
  }
}

}  // namespace strata
