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

// As a weight or a master of this dtype.
void store(std::span<const float> values, DType dtype, std::byte* target) {
  switch (dtype) {
    case DType::bf16:
      std::ranges::transform(values, reinterpret_cast<bfloat16*>(target), weight_to_bfloat16);
      break;
    case DType::u16:
      std::ranges::transform(values, reinterpret_cast<std::uint16_t*>(target), master_low_bits);
      break;
    default:
      ensure(dtype == DType::f32);
      std::memcpy(target, values.data(), values.size_bytes());
  }
}

// The reverse.
void widen(const std::byte* source, DType dtype, std::span<float> values) {
  const auto* weights = reinterpret_cast<const bfloat16*>(source);
  if (dtype == DType::f32)
    std::memcpy(values.data(), source, values.size_bytes());
  else
    std::transform(weights, weights + values.size(), values.begin(),
                   [](bfloat16 weight) { return to_float(weight); });
}

// `values` are the weights of a split master.
void join_low_bits(const std::byte* source, std::span<float> values) {
  const auto* low_bits = reinterpret_cast<const std::uint16_t*>(source);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = join_master(weight_to_bfloat16(values[i]), low_bits[i]);
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
    for (std::size_t b = 0; b < run.model->blocks().size(); ++b) {
      const int block = static_cast<int>(b);
      const ShardId weight = run.program.find(Role::weight, block);
      const ShardId master = run.program.find(Role::master, block);
      for (const ParameterSpec& p : run.model->blocks()[b].parameters)
        places_[p.name] = {weight, master, p.offset};
    }
  }

  // fp32 elements are those of the master, if there is one.
  void read(const std::string& name, std::int64_t first, DType dtype, std::span<std::byte> target) {
    const Place& place = places_.at(name);
    const std::int64_t begin = place.offset + first;
    values_.resize(target.size() / static_cast<std::size_t>(dtype_bytes(dtype)));
    const bool wants_master = dtype == DType::f32 && place.master.valid();
    if (wants_master && run_.program.shard(place.master).dtype == DType::f32) {
      read_floats(place.master, begin);
    } else {
      read_floats(place.weight, begin);
      if (wants_master) join(place.master, begin);
    }
    store(values_, dtype, target.data());
  }

 private:
  struct Place {
    ShardId weight, master;
    std::int64_t offset;
  };

  void read_floats(ShardId shard, std::int64_t begin) {
    const DType dtype = run_.program.shard(shard).dtype;
    for_each_part(shard, begin, [&](const std::byte* source, std::span<float> values) {
      widen(source, dtype, values);
    });
  }
  void join(ShardId low_bits, std::int64_t begin) { for_each_part(low_bits, begin, join_low_bits); }

  // Calls visit(bytes, values) for the parts of `values_` by tile; they begin at element `begin`.
  template <typename Visit>
  void for_each_part(ShardId shard, std::int64_t begin, Visit visit) {
    const std::int64_t width = dtype_bytes(run_.program.shard(shard).dtype);
    std::span<float> left(values_);
    while (!left.empty()) {
      const auto tile = static_cast<int>(begin / run_.program.tile_elements);
      const std::int64_t at = begin - run_.program.tile_begin(shard, tile);
      const auto count = static_cast<std::size_t>(
          std::min(std::ssize(left), run_.program.tile_count(shard, tile) - at));
      visit(bytes_of(shard, tile).data() + at * width, left.first(count));
      left = left.subspan(count);
      begin += static_cast<std::int64_t>(count);
    }
  }

  std::span<const std::byte> bytes_of(ShardId shard, int tile) {
    if (shard != held_shard_ || tile != held_tile_) held_ = state_.read(shard, tile);
    held_shard_ = shard;
    held_tile_ = tile;
    return held_;
  }

  const PlannedRun& run_;
  StateAccess& state_;
  std::map<std::string, Place> places_;
  std::vector<float> values_;
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

ExportOptions export_options(const RunConfig& config, const PlannedRun& run) {
  ExportOptions options;
  options.dtype = config.export_dtype.value_or(run.program.contribution_dtype);
  options.card = model_card(config.model_name_or_path, run);
  return options;
}

}  // namespace

// Elements as fp32, and as the file stores them.
std::uint64_t load_buffer_bytes() {
  return static_cast<std::uint64_t>((piece_elements + tensor_read_elements) *
                                    dtype_bytes(DType::f32));
}

// A piece as fp32, and as it is written.
std::uint64_t export_buffer_bytes(DType dtype) {
  return static_cast<std::uint64_t>(tensor_source_elements *
                                    (dtype_bytes(DType::f32) + dtype_bytes(dtype)));
}

void load_weights(const std::filesystem::path& folder, const PlannedRun& run, StateAccess& state) {
  Loader(folder, run, state).load();
}

void check_export_weights(const RunConfig& config, const std::filesystem::path& target,
                          const PlannedRun& run) {
  check_export(config.model_name_or_path, target, expected_tensors(*run.model),
               export_options(config, run));
}

void export_weights(const RunConfig& config, const std::filesystem::path& target,
                    const PlannedRun& run, StateAccess& state) {
  TileSource source(run, state);
  export_hf_folder(
      config.model_name_or_path, target, expected_tensors(*run.model),
      [&](const std::string& name, std::int64_t first, DType dtype, std::span<std::byte> bytes) {
        source.read(name, first, dtype, bytes);
      },
      export_options(config, run));
}

}  // namespace strata
