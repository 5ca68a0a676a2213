#include "train/tile_source.hpp"

#include <algorithm>

#include "train/weight_elements.hpp"

namespace strata {
namespace {

// The place of an element of a block's vector.
int place_of(const Program& program, ShardId shard, std::int64_t element) {
  const std::int64_t slice = program.slice_elements(shard);
  return static_cast<int>(element / slice * program.slice_tiles(shard) +
                          element % slice / program.tile_elements);
}

}  // namespace

TileSource::TileSource(const PlannedRun& run, TileExchange& tiles)
    : program_(run.program), tiles_(tiles) {
  const std::vector<BlockSpec>& blocks = run.model->blocks();
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const int block = static_cast<int>(b);
    const ShardId weight = program_.find(Role::weight, block);
    const ShardId master = program_.find(Role::master, block);
    for (const ParameterSpec& p : blocks[b].parameters)
      locations_[p.name] = {weight, master, p.offset};
  }
}

void TileSource::read(const std::string& name, std::int64_t first, DType dtype,
                      std::span<std::byte> target) {
  const Location& location = locations_.at(name);
  const std::int64_t begin = location.offset + first;
  values_.resize(target.size() / static_cast<std::size_t>(dtype_bytes(dtype)));
  const bool wants_master = dtype == DType::f32 && location.master.valid();
  const bool is_split = wants_master && program_.shard(location.master).dtype == DType::u16;
  const ShardId shard = wants_master && !is_split ? location.master : location.weight;
  const DType stored = program_.shard(shard).dtype;
  for_each_part(shard, begin, main_, [stored](const std::byte* source, std::span<float> values) {
    widen_elements(source, stored, values);
  });
  if (is_split) for_each_part(location.master, begin, low_bits_, join_low_bits);
  store_elements(values_, dtype, target.data());
}

// Calls visit(bytes, values) for the parts of `values_` by tile; they begin at element `begin` of
// the block's vector.
template <typename Visit>
void TileSource::for_each_part(ShardId shard, std::int64_t begin, HeldTile& held, Visit visit) {
  const std::int64_t width = dtype_bytes(program_.shard(shard).dtype);
  std::span<float> left(values_);
  while (!left.empty()) {
    const int place = place_of(program_, shard, begin);
    const std::int64_t at = begin - program_.place_begin(shard, place);
    const auto count = static_cast<std::size_t>(
        std::min(std::ssize(left), program_.tile_count(shard, place) - at));
    hold(shard, place, held);
    visit(held.bytes.data() + at * width, left.first(count));
    left = left.subspan(count);
    begin += static_cast<std::int64_t>(count);
  }
}

void TileSource::hold(ShardId shard, int place, HeldTile& held) {
  if (held.shard == shard && held.place == place) return;
  held.shard = {};  // until it is there
  held.bytes.resize(static_cast<std::size_t>(program_.tile_bytes(shard, place)));
  tiles_.fetch(shard, place, held.bytes);
  held.shard = shard;
  held.place = place;
}

// A master in fp32, or its two halves.
std::uint64_t TileSource::buffer_bytes(const Program& program) {
  return static_cast<std::uint64_t>(program.tile_elements * dtype_bytes(DType::f32));
}

}  // namespace strata
