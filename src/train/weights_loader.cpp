#include "train/weights_loader.hpp"

#include <algorithm>

#include "strata/core/error.hpp"
#include "train/weight_elements.hpp"

namespace strata {

WeightsLoader::WeightsLoader(const std::filesystem::path& folder, const PlannedRun& run,
                             StateAccess& state)
    : program_(run.program),
      model_(*run.model),
      state_(state),
      weights_(folder, expected_tensors(*run.model)) {}

void WeightsLoader::load() {
  for (std::size_t block = 0; block < model_.blocks().size(); ++block)
    load_block(static_cast<int>(block));
  clear_moments();
  state_.finish();
}

// A weight's tiles and its master's cover the same places, whichever of them this rank holds.
void WeightsLoader::load_block(int block) {
  const ShardId weight = program_.find(Role::weight, block);
  const ShardId master = program_.find(Role::master, block);
  const int num_places = program_.num_slices(weight) * program_.slice_tiles(weight);
  for (int place = 0; place < num_places; ++place) {
    const int weight_tile = program_.tile_at(weight, place);
    const int master_tile = master.valid() ? program_.tile_at(master, place) : -1;
    if (weight_tile < 0 && master_tile < 0) continue;
    const std::span<const float> values =
        read(model_.blocks()[static_cast<std::size_t>(block)], program_.place_begin(weight, place),
             program_.tile_count(weight, place));
    if (weight_tile >= 0) store(weight, weight_tile, values);
    if (master_tile >= 0) store(master, master_tile, values);
  }
}

// Elements of a block's vector; zero between and behind its parameters.
std::span<const float> WeightsLoader::read(const BlockSpec& block, std::int64_t begin,
                                           std::int64_t count) {
  values_.assign(static_cast<std::size_t>(count), 0.0f);
  for (const ParameterSpec& p : block.parameters) {
    const std::int64_t first = std::max(p.offset, begin);
    const std::int64_t last = std::min(p.offset + p.count(), begin + count);
    if (first >= last) continue;
    weights_.read_f32(p.name, first - p.offset,
                      std::span(values_).subspan(static_cast<std::size_t>(first - begin),
                                                 static_cast<std::size_t>(last - first)));
  }
  return values_;
}

void WeightsLoader::store(ShardId shard, int tile, std::span<const float> values) {
  const DType dtype = program_.shard(shard).dtype;
  state_.write_behind(shard, tile, [&](std::span<std::byte> bytes) {
    ensure(std::ssize(bytes) == storage_bytes(dtype, std::ssize(values)));
    store_elements(values, dtype, bytes.data());
  });
}

void WeightsLoader::clear_moments() {
  std::vector<ShardId> moments;
  for (const Shard& shard : program_.shards)
    if (shard.role == Role::moment1 || shard.role == Role::moment2) moments.push_back(shard.id);
  state_.clear(moments);
}

// A tile as fp32, and what the file stores of it a piece at a time.
std::uint64_t WeightsLoader::buffer_bytes(const Program& program) {
  return static_cast<std::uint64_t>((program.tile_elements + tensor_read_elements) *
                                    dtype_bytes(DType::f32));
}

}  // namespace strata
