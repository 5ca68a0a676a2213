#include "train/state_pieces.hpp"

#include <algorithm>
#include <cstring>

#include "strata/core/block_q8.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

// Codes and scales of elements [first, first + count) of a q8 region of `region_count`; `first` is
// a multiple of norm_chunk_elements, and so of a block.
struct Q8Part {
  std::size_t codes, num_codes, scales, scale_bytes;
};
Q8Part q8_part(std::int64_t region_count, std::int64_t first, std::int64_t count) {
  const std::int64_t scales =
      q8_scales_begin(region_count) + first / q8_block_elements * std::int64_t{sizeof(float)};
  return {static_cast<std::size_t>(first), static_cast<std::size_t>(count),
          static_cast<std::size_t>(scales),
          static_cast<std::size_t>(q8_num_blocks(count)) * sizeof(float)};
}

void copy_part(const std::byte* source, const Q8Part& from, std::byte* target, const Q8Part& to) {
  std::memcpy(target + to.codes, source + from.codes, to.num_codes);
  std::memcpy(target + to.scales, source + from.scales, to.scale_bytes);
}

// Calls visit(first element, elements, offset in the vector) for each norm chunk.
template <typename Visit>
void for_each_chunk(std::int64_t count, Visit visit) {
  std::int64_t offset = 0;
  for (std::int64_t first = 0; first < count; first += norm_chunk_elements) {
    const std::int64_t elements = std::min(norm_chunk_elements, count - first);
    visit(first, elements, offset);
    offset += storage_bytes(DType::q8, elements);
  }
}

}  // namespace

std::vector<StateVector> state_vectors(const PlannedRun& run) {
  std::vector<StateVector> vectors;
  const Program& program = run.program;
  for (std::size_t block = 0; block < program.blocks.size(); ++block) {
    for (const Role role : optimizer_roles) {
      const ShardId shard = program.find(role, static_cast<int>(block));
      if (!shard.valid()) continue;
      const DType dtype = role == Role::master ? DType::f32 : program.shard(shard).dtype;
      vectors.push_back({role, program.blocks[block], dtype, program.model_elements(shard)});
    }
  }
  return vectors;
}

bool has_split_master(const Program& program) {
  return std::ranges::any_of(program.shards, [](const Shard& shard) {
    return shard.role == Role::master && shard.dtype == DType::u16;
  });
}

ShardId state_shard(const Program& program, Role role, const std::string& block) {
  const auto found = std::ranges::find(program.blocks, block);
  ensure(found != program.blocks.end());
  return program.find(role, static_cast<int>(found - program.blocks.begin()));
}

std::vector<StateSpan> state_spans(const Program& program, ShardId shard) {
  std::vector<StateSpan> spans;
  const std::int64_t end = program.model_elements(shard);
  const int num_places = program.num_slices(shard) * program.slice_tiles(shard);
  for (int place = 0; place < num_places; ++place) {
    const std::int64_t first = program.place_begin(shard, place);
    const std::int64_t next = place + 1 < num_places ? program.place_begin(shard, place + 1) : end;
    const std::int64_t count = std::min(next, end) - first;
    if (count > 0) spans.push_back({place, first, count});
  }
  return spans;
}

void moment_to_vector(DType dtype, std::int64_t tile_count, std::span<const std::byte> tile,
                      std::int64_t count, std::span<std::byte> elements) {
  if (dtype != DType::q8) {
    std::memcpy(elements.data(), tile.data(), elements.size());
    return;
  }
  for_each_chunk(count, [&](std::int64_t first, std::int64_t chunk, std::int64_t offset) {
    std::byte* target = elements.data() + offset;
    std::fill_n(target, storage_bytes(DType::q8, chunk), std::byte{0});
    copy_part(tile.data(), q8_part(tile_count, first, chunk), target, q8_part(chunk, 0, chunk));
  });
}

void moment_from_vector(DType dtype, std::int64_t count, std::span<const std::byte> elements,
                        std::int64_t tile_count, std::span<std::byte> tile) {
  std::ranges::fill(tile, std::byte{0});
  if (dtype != DType::q8) {
    std::memcpy(tile.data(), elements.data(), elements.size());
    return;
  }
  for_each_chunk(count, [&](std::int64_t first, std::int64_t chunk, std::int64_t offset) {
    copy_part(elements.data() + offset, q8_part(chunk, 0, chunk), tile.data(),
              q8_part(tile_count, first, chunk));
  });
}

}  // namespace strata
