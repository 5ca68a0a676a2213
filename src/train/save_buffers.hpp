#pragma once
// The few buffers in which a checkpoint's pieces are on their way to the disk: one is filled while
// others are written. Thread contract: one thread at a time.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "io/common/awaited_transfer.hpp"
#include "strata/program/program.hpp"

namespace strata {

// Memory that one piece is written from.
class SaveBuffer {
 public:
  explicit SaveBuffer(std::span<std::byte> memory) : memory_(memory) {}
  ~SaveBuffer() { wait(); }
  SaveBuffer(const SaveBuffer&) = delete;
  SaveBuffer& operator=(const SaveBuffer&) = delete;

  // Whether what was written from it arrived, or nothing was.
  bool wait() { return !std::exchange(is_under_way_, false) || transfer_.wait().ok(); }
  IoCompletion& begin() {
    is_under_way_ = true;
    return transfer_;
  }
  std::span<std::byte> memory() const { return memory_; }

 private:
  const std::span<std::byte> memory_;
  AwaitedTransfer transfer_;
  bool is_under_way_ = false;
};

class SaveBuffers {
 public:
  // What one of them takes: a tile in fp32.
  static std::uint64_t bytes_of_one(const Program& program);

  // As many as `memory` holds; it is aligned as checkpoints are, and outlives them.
  SaveBuffers(const Program& program, std::span<std::byte> memory);

  // The one that has been on its way for longest; waits until it has arrived.
  SaveBuffer& next();
  // What was written from one of them did not arrive, or the writer has failed: it knows why.
  bool has_failed() const { return has_failed_; }
  void writer_failed() { has_failed_ = true; }
  // For the next checkpoint: waits for those on their way and forgets what failed.
  void reset();

 private:
  std::vector<std::unique_ptr<SaveBuffer>> buffers_;
  std::size_t next_ = 0;
  bool has_failed_ = false;
};

}  // namespace strata
