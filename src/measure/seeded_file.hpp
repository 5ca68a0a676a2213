#pragma once
// Files whose every word is a function of a seed and its place, written and read back through an
// engine: bytes that went astray, are stale or were never written cannot pass for the right ones.
// Such bytes also do not compress, so that a drive which compresses is measured honestly.
//
// Thread contract: one thread.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "strata/io/io_engine.hpp"

namespace strata {

struct SeededFile {
  FileId file = {};
  std::uint64_t bytes = 0;  // a multiple of 8 and of the file's alignment
  std::uint64_t seed = 0;
};

// Called after each piece with the bytes done; may throw.
using BytesDone = std::function<void(std::uint64_t bytes)>;

// `memory` is scratch for the pieces: aligned, of a multiple of the file's alignment.
void write_seeded(IoEngine& engine, const SeededFile& file, std::span<std::byte> memory,
                  const BytesDone& done);
// Throws Error that names path, offset and both words at the first difference.
void verify_seeded(IoEngine& engine, const SeededFile& file, std::span<std::byte> memory,
                   const BytesDone& done);

// What belongs at `offset` (a multiple of 8) of a file with this seed.
void fill_seeded(std::span<std::byte> memory, std::uint64_t seed, std::uint64_t offset);

}  // namespace strata
