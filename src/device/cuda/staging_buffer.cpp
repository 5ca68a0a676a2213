#include "device/cuda/staging_buffer.hpp"

#include <algorithm>
#include <cstring>

#include "device/cuda/pinned_memory.hpp"
#include "strata/core/bytes.hpp"

namespace strata {
namespace {

constexpr std::uint64_t piece_bytes = 256 * KiB;

}  // namespace

void StagingBuffer::to_device(std::byte* target, const std::byte* source, std::uint64_t bytes,
                              CudaStreamHandle stream) {
  for (std::uint64_t begin = 0; begin < bytes; begin += piece_bytes) {
    const std::uint64_t size = std::min(piece_bytes, bytes - begin);
    const std::size_t piece = next_piece();
    std::memcpy(memory_of(piece), source + begin, size);
    copy(target + begin, memory_of(piece), size, CudaCopy::host_to_device, stream);
    check(api_, api_.event_record(pieces_[piece]->passed.get(), stream), "cudaEventRecord");
    pieces_[piece]->is_used = true;
  }
}

void StagingBuffer::to_host(std::byte* target, const std::byte* source, std::uint64_t bytes,
                            CudaStreamHandle stream) {
  for (std::uint64_t begin = 0; begin < bytes; begin += piece_bytes) {
    const std::uint64_t size = std::min(piece_bytes, bytes - begin);
    const std::size_t piece = next_piece();
    copy(memory_of(piece), source + begin, size, CudaCopy::device_to_host, stream);
    check(api_, api_.stream_synchronize(stream), "cudaStreamSynchronize");
    std::memcpy(target + begin, memory_of(piece), size);
  }
}

void StagingBuffer::prepare() {
  if (memory_.bytes() > 0) return;
  for (std::optional<Piece>& piece : pieces_) piece.emplace(api_);
  memory_ = allocate_pinned_memory(api_, ordinal_, num_pieces * piece_bytes, {});
}

// The one that was given to the stream longest ago.
std::size_t StagingBuffer::next_piece() {
  prepare();
  const std::size_t index = next_++ % num_pieces;
  Piece& piece = *pieces_[index];
  if (piece.is_used)
    check(api_, api_.event_synchronize(piece.passed.get()), "cudaEventSynchronize");
  piece.is_used = false;
  return index;
}

std::byte* StagingBuffer::memory_of(std::size_t piece) {
  return memory_.data() + piece * piece_bytes;
}

void StagingBuffer::copy(void* target, const void* source, std::uint64_t bytes, CudaCopy kind,
                         CudaStreamHandle stream) {
  check(api_, api_.copy(target, source, bytes, kind, stream),
        "cudaMemcpyAsync by a staging buffer");
}

}  // namespace strata
