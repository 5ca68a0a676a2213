#include "seeded_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "strata/core/error.hpp"

namespace strata {
namespace {

constexpr std::uint64_t word_bytes = sizeof(std::uint64_t);

// The finaliser of SplitMix64 (Steele et al., 2014): neighbours give unrelated words.
std::uint64_t word_at(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t word = seed + (index + 1) * 0x9e3779b97f4a7c15ull;
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9ull;
  word = (word ^ (word >> 27)) * 0x94d049bb133111ebull;
  return word ^ (word >> 31);
}

std::uint64_t load_word(const std::byte* at) {
  std::uint64_t word = 0;
  std::memcpy(&word, at, word_bytes);
  return word;
}

void check_seeded(std::span<const std::byte> memory, std::uint64_t seed, std::uint64_t offset,
                  const std::string& path) {
  for (std::uint64_t at = 0; at < memory.size(); at += word_bytes) {
    const std::uint64_t wanted = word_at(seed, (offset + at) / word_bytes);
    const std::uint64_t found = load_word(&memory[at]);
    if (found == wanted) continue;
    throw Error(fmt::format(
        "{} does not hold what was written: at offset {} it has {:#018x} where {:#018x} was "
        "written; the drive, its cable or the memory corrupts data: keep nothing on it",
        path, offset + at, found, wanted));
  }
}

template <typename Piece>
void for_each_piece(const SeededFile& file, std::span<std::byte> memory, const BytesDone& done,
                    Piece piece) {
  for (std::uint64_t at = 0; at < file.bytes;) {
    const auto bytes = std::min<std::uint64_t>(memory.size(), file.bytes - at);
    piece(at, memory.first(bytes));
    at += bytes;
    done(at);
  }
}

void move(IoEngine& engine, IoOp op, FileId file, std::uint64_t offset,
          std::span<std::byte> memory) {
  transfer(
      engine,
      {.op = op, .file = file, .offset = offset, .data = memory.data(), .bytes = memory.size()});
}

}  // namespace

void fill_seeded(std::span<std::byte> memory, std::uint64_t seed, std::uint64_t offset) {
  for (std::uint64_t at = 0; at < memory.size(); at += word_bytes) {
    const std::uint64_t word = word_at(seed, (offset + at) / word_bytes);
    std::memcpy(&memory[at], &word, word_bytes);
  }
}

void write_seeded(IoEngine& engine, const SeededFile& file, std::span<std::byte> memory,
                  const BytesDone& done) {
  for_each_piece(file, memory, done, [&](std::uint64_t at, std::span<std::byte> piece) {
    fill_seeded(piece, file.seed, at);
    move(engine, IoOp::write, file.file, at, piece);
  });
}

void verify_seeded(IoEngine& engine, const SeededFile& file, std::span<std::byte> memory,
                   const BytesDone& done) {
  const std::string path = engine.info(file.file).path;
  for_each_piece(file, memory, done, [&](std::uint64_t at, std::span<std::byte> piece) {
    move(engine, IoOp::read, file.file, at, piece);
    check_seeded(piece, file.seed, at, path);
  });
}

}  // namespace strata
