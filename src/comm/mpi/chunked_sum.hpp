#pragma once
// A ChunkedSum adds what all ranks hold of this rank's part, and gives the others what this rank
// holds of theirs: chunk by chunk, so that the others' values need little memory, which is reserved
// at construction. While one chunk is added the next ones are under way. One thread.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "mpi_endpoint.hpp"
#include "strata/core/tensor_view.hpp"

namespace strata {

// Elements begin ... end - 1 of a flat view.
struct PartSpan {
  std::int64_t begin = 0, end = 0;
  std::int64_t count() const { return end - begin; }
};

class ChunkedSum {
 public:
  explicit ChunkedSum(MpiEndpoint& endpoint);

  // `result` = sum over ranks of their `values` at parts[rank of this endpoint], where it may lie.
  // Every rank gives the same parts.
  void run(TensorView values, std::span<const PartSpan> parts, std::byte* result);

 private:
  struct Round;

  static constexpr std::size_t chunk_bytes = std::size_t{256} << 10, num_slots = 3;

  void begin(std::int64_t chunk);
  void end(std::int64_t chunk);
  PartSpan chunk_of(int rank, std::int64_t chunk) const;
  std::byte* room(std::int64_t chunk, int from);
  Transfers& transfers(std::int64_t chunk);

  MpiEndpoint& endpoint_;
  std::unique_ptr<std::byte[]> rooms_;  // num_slots x ranks x chunk_bytes
  std::array<Transfers, num_slots> transfers_;
  std::vector<const std::byte*> sources_;  // of one chunk, by rank
  // The run at hand.
  TensorView values_;
  std::span<const PartSpan> parts_;
  std::byte* result_ = nullptr;
};

}  // namespace strata
