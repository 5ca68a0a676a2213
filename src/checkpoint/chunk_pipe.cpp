#include "chunk_pipe.hpp"

#include <algorithm>

#include "strata/core/error.hpp"

namespace strata {

// One run: waits for what it has started, however it ends.
struct ChunkPipe::Reading {
  ChunkPipe& pipe;
  IoEngine& engine;
  std::span<const FileExtent> extents;
  ReadPace pace;
  Cursor next = {};

  ~Reading() { pipe.settle(); }

  void start(std::size_t slot_index) {
    if (next.extent == extents.size()) return;
    Slot& slot = pipe.slots_[slot_index];
    const FileExtent& extent = extents[next.extent];
    const std::uint64_t bytes = std::min(chunk_bytes, extent.bytes - next.done);
    std::byte* memory = pipe.memory_.span().data() + slot_index * chunk_bytes;
    slot.chunk = {.extent = next.extent,
                  .offset = extent.offset + next.done,
                  .bytes = {memory, bytes},
                  .is_last = next.done + bytes == extent.bytes,
                  .result = {}};
    next = slot.chunk.is_last ? Cursor{next.extent + 1, 0} : Cursor{next.extent, next.done + bytes};
    slot.is_busy = true;
    const IoRequest request = {.op = IoOp::read,
                               .file = extent.file,
                               .offset = slot.chunk.offset,
                               .data = memory,
                               .bytes = bytes,
                               .priority = pace.priority,
                               .completion = &slot.transfer};
    engine.submit({&request, 1});
  }

  // False at the end.
  bool visit_next(std::size_t slot_index, const std::function<void(const FileChunk&)>& visit) {
    Slot& slot = pipe.slots_[slot_index];
    if (!slot.is_busy) return false;
    slot.chunk.result = slot.transfer.wait();
    slot.is_busy = false;
    visit(slot.chunk);
    start(slot_index);
    return true;
  }
};

ChunkPipe::ChunkPipe()
    : memory_(huge_page_bytes, checkpoint_read_memory_bytes, "the reading of a checkpoint") {}

void ChunkPipe::run(IoEngine& engine, std::span<const FileExtent> extents, const ReadPace& pace,
                    const std::function<void(const FileChunk&)>& visit) {
  const std::size_t num_slots = pace.chunks_in_flight;
  ensure(num_slots > 0 && num_slots <= depth);
  Reading reading{*this, engine, extents, pace};
  for (std::size_t i = 0; i < num_slots; ++i) reading.start(i);
  for (std::size_t turn = 0; reading.visit_next(turn % num_slots, visit); ++turn) {
  }
}

void ChunkPipe::settle() {
  for (Slot& slot : slots_) {
    if (slot.is_busy) slot.transfer.wait();
    slot.is_busy = false;
  }
}

}  // namespace strata
