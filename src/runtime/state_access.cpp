#include "strata/runtime/state_access.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/tile_writes.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

std::span<std::byte> transfer_memory(const Plan& plan, TierMemory& memory) {
  if (plan.transfer.bytes == 0) return {};
  return {memory.host_address(plan.transfer.offset), static_cast<std::size_t>(plan.transfer.bytes)};
}

}  // namespace

StateAccess::StateAccess(const Program& program, const Plan& plan, Device& device,
                         TierMemory& memory, ShardStore* store)
    : program_(program),
      plan_(plan),
      nvme_(program, plan),
      device_(device),
      memory_(memory),
      store_(store),
      stream_(device.make_stream("state access")),
      writes_(std::make_unique<TileWrites>(store, transfer_memory(plan, memory),
                                           plan.limits.io_alignment)) {}

StateAccess::~StateAccess() = default;

std::span<const std::byte> StateAccess::read(ShardId shard, int tile) {
  const Region& from = home(shard, tile);
  writes_->finish();
  if (from.tier == Tier::host) return {memory_.host_address(from.offset), from.bytes};
  const std::span<std::byte> buffer = take(shard, tile);
  if (from.tier == Tier::device) {
    device_.use_on_this_thread();
    device_.copy(buffer.data(), memory_.device_address(from.offset), from.bytes,
                 CopyKind::device_to_host, *stream_);
    stream_->synchronize();
    return buffer;
  }
  try {
    store_->transfer(IoOp::read, nvme_.index(shard, tile), buffer);
  } catch (const Error& error) {
    throw Error(fmt::format("cannot load {}: {}", describe(shard, tile), error.what()));
  }
  return buffer.first(from.bytes);
}

void StateAccess::write(ShardId shard, int tile, const Fill& fill) {
  write_behind(shard, tile, fill);
  finish();
}

void StateAccess::write_behind(ShardId shard, int tile, const Fill& fill) {
  const Region& to = home(shard, tile);
  if (to.tier == Tier::host) {
    fill({memory_.host_address(to.offset), to.bytes});
  } else {
    const std::span<std::byte> buffer = take(shard, tile);
    fill(buffer.first(to.bytes));
    bring_home(shard, tile, buffer);
  }
  if (on_write_) on_write_(to.bytes);
}

// All of those on drives are written from the same zeros.
void StateAccess::clear(std::span<const ShardId> shards) {
  const std::span<std::byte> zeros = writes_->take(plan_.transfer.bytes);
  std::ranges::fill(zeros, std::byte{0});
  for (const ShardId shard : shards)
    for (int tile = 0; tile < program_.num_tiles(shard); ++tile) clear(shard, tile, zeros);
}

void StateAccess::clear(ShardId shard, int tile, std::span<std::byte> zeros) {
  const Region& to = home(shard, tile);
  if (to.tier == Tier::host)
    std::ranges::fill(std::span(memory_.host_address(to.offset), to.bytes), std::byte{0});
  else
    bring_home(shard, tile, zeros);
  if (on_write_) on_write_(to.bytes);
}

void StateAccess::finish() { writes_->finish(); }

const Region& StateAccess::home(ShardId shard, int tile) const {
  const Region& home = plan_.homes[shard.index()][static_cast<std::size_t>(tile)];
  ensure(home.bytes <= plan_.transfer.bytes);
  return home;
}

std::string StateAccess::describe(ShardId shard, int tile) const {
  return fmt::format("'{}' tile {}", program_.shard(shard).name, tile);
}

// Of the transfer memory, as much as goes to the tile's home or comes from there.
std::span<std::byte> StateAccess::take(ShardId shard, int tile) {
  const Region& home = this->home(shard, tile);
  return writes_->take(home.tier == Tier::nvme ? store_->padded_bytes(nvme_.index(shard, tile))
                                               : home.bytes);
}

// From the first of `bytes`, which lie in the transfer memory.
void StateAccess::bring_home(ShardId shard, int tile, std::span<std::byte> bytes) {
  const Region& to = home(shard, tile);
  if (to.tier == Tier::nvme) {
    const int index = nvme_.index(shard, tile);
    const auto padded = static_cast<std::size_t>(store_->padded_bytes(index));
    stored_bytes_ += padded;
    return writes_->start(index, bytes.first(padded), describe(shard, tile));
  }
  device_.use_on_this_thread();
  device_.copy(memory_.device_address(to.offset), bytes.data(), to.bytes, CopyKind::host_to_device,
               *stream_);
  stream_->synchronize();
}

}  // namespace strata
