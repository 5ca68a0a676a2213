#pragma once
// A ChunkPipe reads parts of files one after the other, several chunks ahead of the one that its
// caller looks at: at the drive's rate, in memory that does not depend on how much is read.
//
// Thread contract: one thread at a time.

#include <array>
#include <functional>
#include <span>

#include "io/common/awaited_transfer.hpp"
#include "io/store/aligned_memory.hpp"
#include "strata/checkpoint/state_checkpoint.hpp"

namespace strata {

struct FileExtent {
  FileId file;
  std::uint64_t offset = 0, bytes = 0;  // multiples of checkpoint_alignment
};

struct FileChunk {
  std::size_t extent = 0;
  std::uint64_t offset = 0;  // in the file
  std::span<const std::byte> bytes;
  bool is_last = false;  // of its extent
  IoResult result;       // when it failed, `bytes` are anything
};

// How much of the drive a reading asks for.
struct ReadPace {
  IoPriority priority = IoPriority::now;
  std::size_t chunks_in_flight = 8;
};

class ChunkPipe {
 public:
  static constexpr std::size_t depth = ReadPace{}.chunks_in_flight;  // the most

  ChunkPipe();

  // Calls visit(chunk) for every chunk, in order, also for those that failed. What `visit` throws
  // ends the reading.
  void run(IoEngine& engine, std::span<const FileExtent> extents, const ReadPace& pace,
           const std::function<void(const FileChunk&)>& visit);

 private:
  static constexpr std::uint64_t chunk_bytes = checkpoint_read_memory_bytes / depth;

  struct Slot {
    bool is_busy = false;
    FileChunk chunk;
    AwaitedTransfer transfer;
  };
  // Where the next chunk begins.
  struct Cursor {
    std::size_t extent = 0;
    std::uint64_t done = 0;  // bytes of it
  };
  struct Reading;

  void settle();

  const AlignedMemory memory_;
  std::array<Slot, depth> slots_;
};

}  // namespace strata
