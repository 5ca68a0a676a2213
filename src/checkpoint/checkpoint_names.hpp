#pragma once
// The names that checkpoints have on disk. Thread contract: pure functions.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "strata/checkpoint/state_checkpoint.hpp"

namespace strata {

inline constexpr std::string_view checkpoint_manifest_name = "checkpoint.json";

// What a folder is, by the ending of its name.
enum class FolderState : std::uint8_t { whole, partial, removing, replaced };
std::string folder_name(std::int64_t step, FolderState state);  // "checkpoint-20.partial"

struct FolderName {
  std::int64_t step = 0;
  FolderState state = FolderState::whole;
};
// Nothing when the name is not one that folder_name() makes.
std::optional<FolderName> parse_folder_name(std::string_view name);

// The last part of a path, and what is before it ("." when there is nothing).
std::string base_name(std::string_view path);
std::string parent_path(std::string_view path);

// "00003-master.bin": made of the vector's index, since a block's name may hold any characters.
std::string vector_file_name(std::size_t index, const StateVector& vector);
// Its length: the vector's bytes and zeros up to the alignment.
std::uint64_t vector_file_bytes(const StateVector& vector);
std::uint64_t vector_files_bytes(std::span<const StateVector> vectors);  // of all

// For messages: 'vector "master/layers.3"', 'elements [0, 4096) of vector "master/layers.3"'.
std::string quoted_vector(const StateVector& vector);
std::string quoted_elements(const StateVector& vector, std::int64_t first, std::int64_t end);

}  // namespace strata
