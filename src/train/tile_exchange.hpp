#pragma once
// A TileExchange lets the first rank read tiles of model state of all ranks, one at a time, while
// the others serve it. The first rank tells all, by a broadcast, which tile comes next; the rank
// that holds it sends it. Outside of steps; every rank takes part.
//
// What the first rank does between two tiles, or after the last, may take long: keep_waiting() lets
// the others know that it is still there.
//
// Failure. A rank that fails before its part is over aborts `control`, or whoever runs the ranks
// does: that ends the others' waits with an Error.
//
// Thread contract: one thread; keep_waiting() from any.

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>

#include "strata/comm/communicator.hpp"
#include "strata/device/device.hpp"
#include "strata/runtime/state_access.hpp"

namespace strata {

class TileExchange {
 public:
  // `control` joins the ranks of the program; null when there is one.
  TileExchange(const Program& program, StateAccess& state, Communicator* control);

  // The first rank's: `target` becomes the bytes of the tile in this place of its block.
  void fetch(ShardId shard, int place, std::span<std::byte> target);
  // The first rank's: more is to come, or finish().
  void keep_waiting();
  // The first rank's: ends the others' serve().
  void finish();
  // Of every other rank.
  void serve();

 private:
  struct Request;

  int owner(ShardId shard, int place) const;
  void serve(const Request& request);
  Request broadcast(Request request);
  void send(ShardId shard, int place, std::byte* bytes);

  const Program& program_;
  StateAccess& state_;
  Communicator* control_;
  std::unique_ptr<Device> host_;  // what is sent lies in host memory, whatever the run's device
  std::unique_ptr<Stream> stream_;
  std::mutex mutex_;  // the first rank's: one talks at a time
};

}  // namespace strata
