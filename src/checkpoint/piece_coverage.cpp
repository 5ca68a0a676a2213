#include "piece_coverage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "checkpoint_names.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

void check_form(std::span<const StateVector> vectors, const StatePiece& piece) {
  const auto index = static_cast<std::size_t>(piece.vector);
  if (piece.vector < 0 || index >= vectors.size())
    throw Error(
        fmt::format("a piece of vector {}, of which there are {}", piece.vector, vectors.size()));
  const StateVector& vector = vectors[index];
  const bool lies_within = piece.first >= 0 && piece.first < vector.count && piece.count > 0 &&
                           piece.count <= vector.count - piece.first;
  const bool begins_and_ends_well =
      piece.first % norm_chunk_elements == 0 &&
      (piece.count % norm_chunk_elements == 0 || piece.first + piece.count == vector.count);
  if (lies_within && begins_and_ends_well) return;
  throw Error(fmt::format("a piece of {} elements from {} does not fit into the {} of {}",
                          piece.count, piece.first, vector.count, quoted_vector(vector)));
}

// Takes the pieces of one vector off the front of `rest`.
void check_vector(int index, const StateVector& vector, std::span<const StatePiece>& rest) {
  std::int64_t end = 0;
  for (; !rest.empty() && rest.front().vector == index; rest = rest.subspan(1)) {
    const std::int64_t first = rest.front().first;
    if (first > end) throw Error(quoted_elements(vector, end, first) + " were written by nobody");
    if (first < end)
      throw Error(quoted_elements(vector, first, std::min(end, first + rest.front().count)) +
                  " were written twice");
    end += rest.front().count;
  }
  if (end != vector.count)
    throw Error(quoted_elements(vector, end, vector.count) + " were written by nobody");
}

}  // namespace

std::vector<StatePiece> sorted_pieces(std::vector<StatePiece> pieces) {
  std::ranges::sort(pieces, {}, [](const StatePiece& piece) {
    return std::tuple(piece.vector, piece.first, piece.count);
  });
  return pieces;
}

void check_coverage(std::span<const StateVector> vectors, std::span<const StatePiece> pieces) {
  for (const StatePiece& piece : pieces) check_form(vectors, piece);
  for (std::size_t i = 0; i < vectors.size(); ++i)
    check_vector(static_cast<int>(i), vectors[i], pieces);
}

}  // namespace strata
