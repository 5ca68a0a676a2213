#include "train/weights_io.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "strata/core/error.hpp"

namespace strata {
namespace {

constexpr std::int64_t piece_elements = 1 << 16;

// Calls visit(parameter, first element in it, first element in the tile, count) for each piece of a
// parameter in the tile.
template <typename Visit>
void for_each_piece(const BlockSpec& block, std::int64_t tile_begin, std::int64_t tile_count,
                    Visit visit) {
  for (const ParameterSpec& p : block.parameters) {
    const std::int64_t begin = std::max(p.offset, tile_begin);
    const std::int64_t end = std::min(p.offset + p.count(), tile_begin + tile_count);
    for (std::int64_t at = begin; at < end; at += piece_elements)
      visit(p, at - p.offset, at - tile_begin, std::min(piece_elements, end - at));
  }
}

void store(std::span<const float> values, DType dtype, std::byte* target) {
  if (dtype == DType::f32) {
    std::memcpy(target, values.data(), values.size_bytes());
    return;
  }
  auto* weights = reinterpret_cast<bfloat16*>(target);
  for (std::size_t i = 0; i < values.size(); ++i) weights[i] = weight_to_bfloat16(values[i]);
}

class Loader {
 public:
  Loader(const std::filesystem::path& folder, const PlannedRun& run, StateAccess& state)
      : run_(run),
        state_(state),
        weights_(folder, expected_tensors(*run.model)),
        buffer_(piece_elements) {}

  void load() {
    for (const Shard& shard : run_.program.shards) {
      for (int tile = 0; tile < run_.program.num_tiles(shard.id); ++tile) {
        if (shard.role == Role::weight || shard.role == Role::master) load_tile(shard, tile);
        if (shard.role == Role::moment1 || shard.role == Role::moment2) clear_tile(shard, tile);
      }
    }
  }

 private:
  void load_tile(const Shard& shard, int tile) {
    const BlockSpec& block = run_.model->blocks()[static_cast<std::size_t>(shard.block)];
    const std::int64_t begin = run_.program.tile_begin(shard.id, tile);
    state_.write(shard.id, tile, [&](std::span<std::byte> bytes) {
      std::ranges::fill(bytes, std::byte{0});
      for_each_piece(
          block, begin, run_.program.tile_count(shard.id, tile),
          [&](const ParameterSpec& p, std::int64_t first, std::int64_t at, std::int64_t count) {
            const std::span<float> values(buffer_.data(), static_cast<std::size_t>(count));
            weights_.read_f32(p.name, first, values);
            store(values, shard.dtype, bytes.data() + at * dtype_bytes(shard.dtype));
          });
    });
  }
  void clear_tile(const Shard& shard, int tile) {
    state_.write(shard.id, tile,
                 [](std::span<std::byte> bytes) { std::ranges::fill(bytes, std::byte{0}); });
  }

  const PlannedRun& run_;
  StateAccess& state_;
  HfWeights weights_;
  std::vector<float> buffer_;
};

// Reads elements of named parameters from their tiles; keeps the tile read last.
class TileSource {
 public:
  TileSource(const PlannedRun& run, StateAccess& state) : run_(run), state_(state) {
    for (std::size_t b = 0; b < run.model->blocks().size(); ++b)
      for (const ParameterSpec& p : run.model->blocks()[b].parameters)
        places_[p.name] = {run.program.find(Role::weight, static_cast<int>(b)), p.offset};
  }

  void read(const std::string& name, std::int64_t first, DType dtype, std::span<std::byte> target) {
    const Place& place = places_.at(name);
    const DType stored = run_.program.shard(place.shard).dtype;
    const std::int64_t width = dtype_bytes(dtype);
    const std::int64_t count = static_cast<std::int64_t>(target.size()) / width;
    for (std::int64_t done = 0; done < count;) {
      const std::int64_t at = place.offset + first + done;
      const auto tile = static_cast<int>(at / run_.program.tile_elements);
      const std::int64_t begin = at - run_.program.tile_begin(place.shard, tile);
      const std::int64_t piece =
          std::min(count - done, run_.program.tile_count(place.shard, tile) - begin);
      convert(bytes_of(place.shard, tile).data() + begin * dtype_bytes(stored), stored,
              target.data() + done * width, dtype, piece);
      done += piece;
    }
  }

 private:
  struct Place {
    ShardId shard;
    std::int64_t offset;
  };

  std::span<const std::byte> bytes_of(ShardId shard, int tile) {
    if (shard != held_shard_ || tile != held_tile_) held_ = state_.read(shard, tile);
    held_shard_ = shard;
    held_tile_ = tile;
    return held_;
  }

  static void convert(const std::byte* source, DType from, std::byte* target, DType to,
                      std::int64_t count) {
    if (from == to) {
      std::memcpy(target, source, static_cast<std::size_t>(count * dtype_bytes(from)));
      return;
    }
    for (std::int64_t i = 0; i < count; ++i) {
      const float value = from == DType::f32
                              ? reinterpret_cast<const float*>(source)[i]
                              : to_float(reinterpret_cast<const bfloat16*>(source)[i]);
      if (to == DType::f32)
        reinterpret_cast<float*>(target)[i] = value;
      else
        reinterpret_cast<bfloat16*>(target)[i] = weight_to_bfloat16(value);
    }
  }

  const PlannedRun& run_;
  StateAccess& state_;
  std::map<std::string, Place> places_;
  std::span<const std::byte> held_;
  ShardId held_shard_;
  int held_tile_ = -1;
};

std::string model_card(const std::filesystem::path& base, const PlannedRun& run) {
  return fmt::format(
      "# {}\n\nFine-tuned with Strata from the weights in `{}`.\n\n- parameters: {}\n- plan: "
      "{:016x}\n",
      base.filename().string(), base.filename().string(), run.model->num_parameters(),
      plan_hash(run.program, run.plan));
}

ExportOptions export_options(const std::filesystem::path& base, const PlannedRun& run) {
  ExportOptions options;
  options.dtype = run.program.contribution_dtype;
  options.card = model_card(base, run);
  return options;
}

}  // namespace

void load_weights(const std::filesystem::path& folder, const PlannedRun& run, StateAccess& state) {
  Loader(folder, run, state).load();
}

void check_export_weights(const std::filesystem::path& base, const std::filesystem::path& target,
                          const PlannedRun& run) {
  check_export(base, target, expected_tensors(*run.model), export_options(base, run));
}

void export_weights(const std::filesystem::path& base, const std::filesystem::path& target,
                    const PlannedRun& run, StateAccess& state) {
  TileSource source(run, state);
  export_hf_folder(
      base, target, expected_tensors(*run.model),
      [&](const std::string& name, std::int64_t first, DType dtype, std::span<std::byte> bytes) {
        source.read(name, first, dtype, bytes);
      },
      export_options(base, run));
}

}  // namespace strata
