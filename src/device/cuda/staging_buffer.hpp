#pragma once
// Pinned memory through which host memory that is not pinned reaches a stream, in pieces. Made when
// it is first needed. Used by the stream's thread.

#include <array>
#include <cstdint>
#include <optional>

#include "device/cuda/cuda_handles.hpp"
#include "strata/device/device.hpp"

namespace strata {

class StagingBuffer {
 public:
  StagingBuffer(CudaApi& api, int ordinal) : api_(api), ordinal_(ordinal) {}

  // Makes it before it is needed. Throws where it cannot be registered.
  void prepare();
  // The source may be changed on return. Waits only when all pieces are on their way.
  void to_device(std::byte* target, const std::byte* source, std::uint64_t bytes,
                 CudaStreamHandle stream);
  // Complete on return, with all that the stream had to do before.
  void to_host(std::byte* target, const std::byte* source, std::uint64_t bytes,
               CudaStreamHandle stream);

 private:
  static constexpr std::size_t num_pieces = 16;
  struct Piece {
    explicit Piece(CudaApi& api) : passed(api) {}
    CudaEventOwner passed;
    bool is_used = false;
  };
  std::size_t next_piece();
  std::byte* memory_of(std::size_t piece);
  void copy(void* target, const void* source, std::uint64_t bytes, CudaCopy kind,
            CudaStreamHandle stream);

  CudaApi& api_;
  const int ordinal_;
  Slab memory_;
  std::array<std::optional<Piece>, num_pieces> pieces_;
  std::size_t next_ = 0;
};

}  // namespace strata
