#pragma once
// The TileWrites of a load are those of its tiles that are on their way to the store, from one
// region of memory that is used round and round: the next tile is made while the last ones are
// written. A write that failed is told by whoever waits for it next.
//
// Thread contract: one thread.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>

#include "io/common/awaited_transfer.hpp"
#include "strata/io/store/shard_store.hpp"

namespace strata {

class TileWrites {
 public:
  // `store` may be null: nothing is started. What is taken of `memory` is as aligned as that is.
  TileWrites(ShardStore* store, std::span<std::byte> memory, std::uint64_t alignment)
      : store_(store), memory_(memory), alignment_(alignment) {}
  ~TileWrites();  // Waits, and keeps quiet.
  TileWrites(const TileWrites&) = delete;
  TileWrites& operator=(const TileWrites&) = delete;

  // Memory that no write uses any more. Throws Error when one that did has failed.
  std::span<std::byte> take(std::uint64_t bytes);
  // From what was taken last, which others may use too; `name` is for the error.
  void start(int tile, std::span<std::byte> bytes, std::string name);
  // Until none is under way. Throws Error.
  void finish();

 private:
  struct Write {
    std::span<std::byte> bytes;
    std::string name;
    AwaitedTransfer done = {};
  };

  bool is_in_use(std::span<const std::byte> bytes) const;
  void wait_for_first();

  ShardStore* store_;
  const std::span<std::byte> memory_;
  const std::uint64_t alignment_;
  std::size_t next_ = 0;  // where what is taken next begins
  std::deque<Write> under_way_;
};

}  // namespace strata
