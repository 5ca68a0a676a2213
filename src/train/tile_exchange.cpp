#include "train/tile_exchange.hpp"

#include <algorithm>
#include <cstdint>

#include "strata/core/error.hpp"

namespace strata {
namespace {

constexpr int reader = 0;  // the first rank

}  // namespace

// Without a shard: there is no more to ask for, or nothing yet.
struct TileExchange::Request {
  ShardId shard;
  std::int32_t place = no_more;
  static constexpr std::int32_t no_more = -1, not_yet = -2;
};

TileExchange::TileExchange(const Program& program, StateAccess& state, Communicator* control)
    : program_(program),
      state_(state),
      control_(program.world > 1 ? control : nullptr),
      host_(make_host_device({})),
      stream_(host_->make_stream("tile exchange")) {
  if (program.world == 1) return;
  ensure(control != nullptr && control->world() == program.world &&
         control->rank() == program.rank);
}

// The others hear of its own tiles too: no wait of theirs is longer than a tile takes to write.
void TileExchange::fetch(ShardId shard, int place, std::span<std::byte> target) {
  ensure(program_.rank == reader);
  const std::lock_guard lock(mutex_);
  if (control_ != nullptr) broadcast({shard, place});
  if (owner(shard, place) != reader) return send(shard, place, target.data());
  const auto bytes = state_.read(shard, program_.tile_at(shard, place));
  ensure(bytes.size() == target.size());
  std::ranges::copy(bytes, target.begin());
}

void TileExchange::keep_waiting() {
  const std::lock_guard lock(mutex_);
  if (control_ != nullptr) broadcast({{}, Request::not_yet});
}

void TileExchange::finish() {
  const std::lock_guard lock(mutex_);
  if (control_ != nullptr) broadcast({});
}

void TileExchange::serve() {
  ensure(program_.rank != reader);
  for (Request request = broadcast({}); request.place != Request::no_more; request = broadcast({}))
    if (request.shard.valid() && owner(request.shard, request.place) != reader) serve(request);
}

void TileExchange::serve(const Request& request) {
  std::byte* bytes = nullptr;
  // It is only read from, but a view says nothing of that.
  if (owner(request.shard, request.place) == program_.rank)
    bytes = const_cast<std::byte*>(
        state_.read(request.shard, program_.tile_at(request.shard, request.place)).data());
  send(request.shard, request.place, bytes);
}

// Who gives the tile: the rank in whose slice it lies, or the first when all have it.
int TileExchange::owner(ShardId shard, int place) const {
  const bool is_sliced = program_.shard(shard).sharing == Sharing::sliced;
  return is_sliced ? place / program_.slice_tiles(shard) : reader;
}

// The first rank's request, on all ranks.
TileExchange::Request TileExchange::broadcast(Request request) {
  std::int32_t words[] = {request.shard.value, request.place};
  control_->broadcast({words, DType::i32, {2}}, reader, *stream_);
  return {{words[0]}, words[1]};
}

// What the others bring is not looked at.
void TileExchange::send(ShardId shard, int place, std::byte* bytes) {
  const TensorView tile{bytes, program_.shard(shard).dtype, {program_.tile_count(shard, place)}};
  control_->send(tile, owner(shard, place), reader, *stream_);
}

}  // namespace strata
