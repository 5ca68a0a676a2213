#pragma once
// A CheckpointManifest is what checkpoint.json says: where the run stood, the vectors, and the
// pieces that they were written in, each with its checksum. The text ends in a checksum of itself
// and is a multiple of the alignment long, so that it can be read back from the drive directly.
// There is one spelling of a manifest: what is read must be, byte for byte, what would be written.
//
// Thread contract: a value.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "strata/checkpoint/state_checkpoint.hpp"

namespace strata {

inline constexpr std::uint64_t checkpoint_json_bytes_max = std::uint64_t{256} << 20;
inline constexpr std::size_t state_vectors_max = 1 << 16, state_pieces_max = 1 << 20;

struct CheckpointManifest {
  std::string strata_version;  // that wrote it
  RunNote note;
  std::vector<StateVector> vectors;
  std::vector<StatePiece> pieces;  // by vector, then by element: they cover each exactly
};

// Throws ConfigError when a text in it is no UTF-8.
std::string checkpoint_json(const CheckpointManifest& manifest);
// Throws FormatError naming `path` and what is wrong.
CheckpointManifest parse_checkpoint_json(std::string_view text, const std::string& path);

}  // namespace strata
