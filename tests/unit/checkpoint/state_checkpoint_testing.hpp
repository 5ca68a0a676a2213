#pragma once
// What the suites of state checkpoints share: vectors with known bytes, ways to cut them, and a
// save from beginning to end.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "contract/io/io_testing.hpp"
#include "strata/checkpoint/state_checkpoint.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"

namespace strata::testing {

inline const std::string out = "/out";  // the output folder of tests on simulated disks

// Names of blocks may hold anything; sizes are multiples of nothing.
inline std::vector<StateVector> odd_vectors() {
  return {{Role::master, "layers.3", DType::f32, 3 * norm_chunk_elements + 17},
          {Role::weight, "../\"head\"\n", DType::bf16, 5 * norm_chunk_elements + 4095},
          {Role::moment1, "layers.3", DType::q8, 7 * norm_chunk_elements + 300},
          {Role::moment2, "layers.3", DType::q8, 1},
          {Role::moment1, "", DType::f32, 2 * norm_chunk_elements}};
}

// The bytes that a test means by `stamp` in a vector.
inline std::vector<std::byte> vector_contents(const StateVector& vector, std::uint64_t stamp) {
  std::vector<std::byte> bytes(state_vector_bytes(vector));
  PhiloxStream random(stamp, std::hash<std::string>()(state_vector_name(vector)));
  for (std::size_t at = 0; at < bytes.size(); at += 4) {
    const std::uint32_t word = random.next_u32();
    std::memcpy(bytes.data() + at, &word, std::min<std::size_t>(4, bytes.size() - at));
  }
  return bytes;
}

struct Range {
  std::int64_t first = 0, count = 0;
  std::int64_t end() const { return first + count; }
};

// As ranks cut a vector into slices, and each its slice into tiles that begin anew.
struct Cut {
  int world = 1;
  std::int64_t tile_elements = 2 * norm_chunk_elements;

  std::int64_t slice_elements(std::int64_t count) const {
    return ceil_div(ceil_div(count, world), norm_chunk_elements) * norm_chunk_elements;
  }
  std::vector<Range> of_rank(std::int64_t count, int rank) const {
    std::vector<Range> ranges;
    const std::int64_t slice = slice_elements(count), begin = rank * slice;
    const std::int64_t end = std::min(count, begin + slice);
    for (std::int64_t at = begin; at < end; at += tile_elements)
      ranges.push_back({at, std::min(tile_elements, end - at)});
    return ranges;
  }
  std::vector<Range> of(std::int64_t count) const {
    std::vector<Range> all;
    for (int rank = 0; rank < world; ++rank)
      for (const Range& range : of_rank(count, rank)) all.push_back(range);
    return all;
  }
};
constexpr Cut cut_into_tiles = {.tile_elements = norm_chunk_elements};

// A master and a moment, neither a whole number of tiles.
inline std::vector<StateVector> few_vectors() {
  return {{Role::master, "a", DType::f32, 2 * norm_chunk_elements + 17},
          {Role::moment1, "a", DType::q8, 2 * norm_chunk_elements + 5}};
}

inline Buffer piece_memory(const StateVector& vector, const Range& range,
                           std::span<const std::byte> contents) {
  const std::uint64_t begin = state_vector_offset(vector, range.first);
  const auto own = contents.subspan(begin, state_vector_offset(vector, range.end()) - begin);
  Buffer memory(align_up(own.size(), checkpoint_alignment));
  std::ranges::fill(memory.span(), std::byte{0x5a});  // behind a vector's end come zeros
  std::ranges::copy(own, memory.data());
  return memory;
}

// Writes what a rank of `cut` has, all pieces of a vector at the same time.
inline void write_rank(CheckpointWriter& writer, const std::vector<StateVector>& vectors,
                       std::uint64_t stamp, const Cut& cut, int rank) {
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    const auto contents = vector_contents(vectors[i], stamp);
    std::deque<Outcome> outcomes;
    std::vector<Buffer> buffers;
    for (const Range& range : cut.of_rank(vectors[i].count, rank)) {
      buffers.push_back(piece_memory(vectors[i], range, contents));
      writer.write(static_cast<int>(i), range.first, range.count, buffers.back().span(),
                   outcomes.emplace_back());
    }
    for (Outcome& outcome : outcomes) outcome.wait();
  }
}

inline RunNote note_of_step(std::int64_t step) {
  return {.step = step,
          .updates_applied = step - 1,
          .skipped_steps = 1,
          .micro_batches_seen = step * 8,
          .rows_per_micro_batch = 2,
          .sequence_length = 1024,
          .data_seed = ~std::uint64_t{0},
          .seed = 42,
          .data_fingerprint = "d1",
          .model_fingerprint = "m1",
          .config = "model: \"x\"\nsteps: 10\n"};
}

inline void save(IoEngine& engine, const std::string& directory, std::int64_t step,
                 const std::vector<StateVector>& vectors, std::uint64_t stamp, const Cut& cut = {},
                 const std::optional<HeldOutLoss>& held_out = {}) {
  const auto writer = CheckpointWriter::open(engine, directory, step, vectors, true);
  for (int rank = 0; rank < cut.world; ++rank) write_rank(*writer, vectors, stamp, cut, rank);
  RunNote note = note_of_step(step);
  note.held_out = held_out;
  writer->commit(writer->finish(), note);
}

// A vector read in the pieces of `cut`.
inline std::vector<std::byte> read_vector(const CheckpointReader& reader, int index,
                                          const Cut& cut) {
  const StateVector& vector = reader.info().vectors[static_cast<std::size_t>(index)];
  std::vector<std::byte> bytes(state_vector_bytes(vector));
  for (const Range& range : cut.of(vector.count)) {
    const std::uint64_t begin = state_vector_offset(vector, range.first);
    const std::uint64_t end = state_vector_offset(vector, range.end());
    reader.read(index, range.first, range.count, std::span(bytes).subspan(begin, end - begin));
  }
  return bytes;
}

inline ::testing::AssertionResult holds(const CheckpointReader& reader, std::uint64_t stamp,
                                        const Cut& cut = {}) {
  for (std::size_t i = 0; i < reader.info().vectors.size(); ++i) {
    const StateVector& vector = reader.info().vectors[i];
    if (read_vector(reader, static_cast<int>(i), cut) != vector_contents(vector, stamp))
      return ::testing::AssertionFailure()
             << state_vector_name(vector) << " has not the bytes of stamp " << stamp;
  }
  return ::testing::AssertionSuccess();
}

// Opens, verifies and has the bytes.
inline ::testing::AssertionResult is_good(IoEngine& engine, const std::string& path,
                                          std::uint64_t stamp) {
  const auto reader = CheckpointReader::open(engine, path);
  for (const std::string& problem : reader->verify())
    return ::testing::AssertionFailure() << problem;
  return holds(*reader, stamp);
}

inline std::vector<std::int64_t> steps_in(FileSystem& files, const std::string& directory) {
  std::vector<std::int64_t> steps;
  for (const CheckpointEntry& entry : list_checkpoints(files, directory))
    steps.push_back(entry.step);
  return steps;
}

}  // namespace strata::testing
