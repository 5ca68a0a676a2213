#pragma once
// A HashedTransfer is one transfer of a tile whose bytes are hashed: a write before it goes to the
// engine, a read after it has come back. A HashQueue holds those that wait for a hash thread.
//
// Thread contract: none of their own; HashedTransfers guards them.

#include <array>
#include <cstddef>
#include <cstdint>

#include "strata/io/io_engine.hpp"

namespace strata {

class HashedTransfers;

struct HashedTransfer final : IoCompletion {
  enum class Step : std::uint8_t {
    idle,
    hash_write,  // waits for a hash thread, or is with one
    at_engine,
    check_read,  // as hash_write
    refuse,      // waits for a hash thread to tell the caller `result`
    ending,      // the caller is being told
  };

  void complete(const IoResult& engine_result) noexcept override;

  HashedTransfers* owner = nullptr;
  Step step = Step::idle;
  bool cancelled = false;
  std::size_t tile = 0;
  IoRequest request;  // its completion is this
  IoCompletion* caller = nullptr;
  std::uint64_t hash_bytes = 0;  // the tile's own, of request.bytes
  std::uint64_t checksum = 0;    // of what is written; expected of what is read
  IoResult result;
  HashedTransfer* next = nullptr;  // in the list that holds it
};

// By priority, first come first served within one; every fourth turn goes to the lowest class that
// waits, so that none starves.
class HashQueue {
 public:
  static constexpr std::uint64_t turns_per_lowest_turn = 4;

  void push(HashedTransfer& transfer);
  bool empty() const;
  HashedTransfer* pop();  // nullptr when empty

 private:
  struct Line {
    HashedTransfer* head = nullptr;
    HashedTransfer* tail = nullptr;
  };
  Line* highest();
  Line* lowest();

  std::array<Line, num_io_priorities> lines_;
  std::uint64_t turn_ = 0;
};

}  // namespace strata
