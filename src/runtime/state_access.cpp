#include "strata/runtime/state_access.hpp"

#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"

namespace strata {

StateAccess::StateAccess(const Program& program, const Plan& plan, Device& device,
                         TierMemory& memory, TileStore* store)
    : program_(program),
      plan_(plan),
      device_(device),
      memory_(memory),
      store_(store),
      stream_(device.make_stream("state access")) {}

std::span<const std::byte> StateAccess::read(ShardId shard, int tile) {
  const Region& home = plan_.homes[shard.index()][static_cast<std::size_t>(tile)];
  std::byte* buffer = memory_.host_address(plan_.transfer.offset);
  ensure(home.bytes <= plan_.transfer.bytes);
  switch (home.tier) {
    case Tier::host:
      return {memory_.host_address(home.offset), home.bytes};
    case Tier::device:
      device_.copy(buffer, memory_.device_address(home.offset), home.bytes,
                   CopyKind::device_to_host, *stream_);
      stream_->synchronize();
      break;
    case Tier::nvme:
      store_->transfer(IoOp::read, home.drive, home.offset,
                       {buffer, align_up(home.bytes, store_->alignment())});
      break;
  }
  return {buffer, home.bytes};
}

void StateAccess::write(ShardId shard, int tile,
                        const std::function<void(std::span<std::byte>)>& fill) {
  const Region& home = plan_.homes[shard.index()][static_cast<std::size_t>(tile)];
  ensure(home.bytes <= plan_.transfer.bytes);
  if (home.tier == Tier::host) return fill({memory_.host_address(home.offset), home.bytes});
  std::byte* buffer = memory_.host_address(plan_.transfer.offset);
  fill({buffer, home.bytes});
  if (home.tier == Tier::device) {
    device_.copy(memory_.device_address(home.offset), buffer, home.bytes, CopyKind::host_to_device,
                 *stream_);
    stream_->synchronize();
  } else {
    store_->transfer(IoOp::write, home.drive, home.offset,
                     {buffer, align_up(home.bytes, store_->alignment())});
  }
}

}  // namespace strata
