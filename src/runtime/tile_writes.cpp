#include "runtime/tile_writes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

constexpr std::size_t writes_max = 8;  // enough for a drive, and few to wait for at the end

}  // namespace

TileWrites::~TileWrites() {
  for (Write& write : under_way_) write.done.wait();
}

std::span<std::byte> TileWrites::take(std::uint64_t bytes) {
  ensure(bytes <= memory_.size());
  if (next_ + bytes > memory_.size()) next_ = 0;
  const auto taken = memory_.subspan(next_, static_cast<std::size_t>(bytes));
  while (is_in_use(taken)) wait_for_first();
  next_ += static_cast<std::size_t>(align_up(bytes, alignment_));
  return taken;
}

void TileWrites::start(int tile, std::span<std::byte> bytes, std::string name) {
  if (under_way_.size() >= writes_max) wait_for_first();
  Write& write = under_way_.emplace_back(bytes, std::move(name));
  store_->submit(IoOp::write, tile, bytes, IoPriority::now, write.done);
}

void TileWrites::finish() {
  while (!under_way_.empty()) wait_for_first();
}

bool TileWrites::is_in_use(std::span<const std::byte> bytes) const {
  return std::ranges::any_of(under_way_, [&](const Write& write) {
    return write.bytes.data() < bytes.data() + bytes.size() &&
           bytes.data() < write.bytes.data() + write.bytes.size();
  });
}

void TileWrites::wait_for_first() {
  const IoResult result = under_way_.front().done.wait();
  const std::string name = std::move(under_way_.front().name);
  under_way_.pop_front();
  if (!result.ok()) throw Error(fmt::format("cannot store {}: {}", name, result.message));
}

}  // namespace strata
