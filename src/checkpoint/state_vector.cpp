#include <fmt/format.h>

#include "strata/checkpoint/state_checkpoint.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

// checkpoint.json: what a vector and a piece take there, and the rest of it.
constexpr std::uint64_t vector_entry_bytes = 1 * KiB, piece_entry_bytes = 64, head_bytes = 4 * MiB;

}  // namespace

std::string state_vector_name(const StateVector& vector) {
  return fmt::format("{}/{}", role_name(vector.role), vector.block);
}

std::uint64_t state_vector_bytes(const StateVector& vector) {
  return state_vector_offset(vector, vector.count);
}

std::uint64_t state_vector_offset(const StateVector& vector, std::int64_t first) {
  ensure(0 <= first && first <= vector.count);
  ensure(first % norm_chunk_elements == 0 || first == vector.count);
  const std::int64_t chunks = first / norm_chunk_elements, rest = first % norm_chunk_elements;
  return static_cast<std::uint64_t>(chunks * storage_bytes(vector.dtype, norm_chunk_elements) +
                                    storage_bytes(vector.dtype, rest));
}

std::uint64_t checkpoint_bytes(std::span<const StateVector> vectors, std::uint64_t alignment) {
  std::uint64_t bytes = head_bytes + vectors.size() * vector_entry_bytes;
  for (const StateVector& vector : vectors) {
    const std::uint64_t own = align_up(state_vector_bytes(vector), alignment);
    bytes += own + (own / MiB + 1) * piece_entry_bytes;
  }
  return bytes;
}

}  // namespace strata
