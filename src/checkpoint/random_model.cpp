#include "strata/checkpoint/random_model.hpp"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <thread>

#include "config_dtype.hpp"
#include "elements.hpp"
#include "shard_writer.hpp"
#include "staged_folder.hpp"
#include "strata/checkpoint/llama_tensors.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"
#include "strata/core/philox.hpp"
#include "strata/core/plain_file.hpp"

namespace strata {
namespace {

// Four independent normals, addressed by position: two Box-Muller pairs from one Philox block.
class NormalBlocks {
 public:
  NormalBlocks(std::uint64_t seed, std::string_view stream, double deviation)
      : key_{low(seed), high(seed)},
        stream_(XXH3_64bits(stream.data(), stream.size())),
        deviation_(deviation) {}

  std::array<float, 4> at(std::uint64_t block) const {
    const auto bits = philox4x32({low(block), high(block), low(stream_), high(stream_)}, key_);
    std::array<float, 4> values;
    for (std::size_t pair = 0; pair < 4; pair += 2) {
      const double uniform = (bits[pair] + 1.0) * 0x1p-32;  // in (0, 1]
      const double radius = deviation_ * std::sqrt(-2.0 * std::log(uniform));
      const double angle = 2.0 * std::numbers::pi * 0x1p-32 * bits[pair + 1];
      values[pair] = static_cast<float>(radius * std::cos(angle));
      values[pair + 1] = static_cast<float>(radius * std::sin(angle));
    }
    return values;
  }

 private:
  static std::uint32_t low(std::uint64_t value) { return static_cast<std::uint32_t>(value); }
  static std::uint32_t high(std::uint64_t value) { return static_cast<std::uint32_t>(value >> 32); }

  std::array<std::uint32_t, 2> key_;
  std::uint64_t stream_;
  double deviation_;
};

void fill_normal(const NormalBlocks& blocks, std::uint64_t first, std::span<float> target) {
  for (std::size_t i = 0; i < target.size();) {
    const std::array<float, 4> values = blocks.at((first + i) / 4);
    for (std::size_t lane = (first + i) % 4; lane < 4 && i < target.size(); ++lane) {
      target[i++] = values[lane];
    }
  }
}

bool is_norm(std::string_view name) { return name.ends_with("norm.weight"); }
bool is_bias(std::string_view name) { return name.ends_with(".bias"); }

// Below this a thread costs more than it fills.
constexpr std::int64_t part_elements_min = 16 * 1024;

int thread_count(int asked) {
  return asked > 0 ? asked : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

// Gives the export chunks of the random model, made by several threads.
class RandomSource {
 public:
  explicit RandomSource(const RandomModelOptions& options)
      : options_(options), threads_(thread_count(options.threads)) {}

  void operator()(const std::string& name, std::int64_t first, DType dtype,
                  std::span<std::byte> target) {
    const std::int64_t width = dtype_bytes(dtype), count = std::ssize(target) / width;
    values_.resize(static_cast<std::size_t>(count));
    const std::int64_t part = std::max(part_elements_min, ceil_div(count, threads_));
    std::vector<std::jthread> workers;
    for (std::int64_t begin = 0; begin < count; begin += part) {
      const std::int64_t size = std::min(part, count - begin);
      workers.emplace_back([=, this, &name] {
        const auto values = std::span(values_).subspan(begin, size);
        fill_random_weights(options_.seed, options_.config, name, first + begin, values);
        from_f32(values, dtype, target.subspan(begin * width, size * width));
      });
    }
  }

 private:
  const RandomModelOptions& options_;
  int threads_;
  std::vector<float> values_;
};

void check_options(const RandomModelOptions& options) {
  if (options.dtype != DType::f32 && options.dtype != DType::bf16 && options.dtype != DType::f16) {
    throw ConfigError("a random model may be f32, bf16 or f16, not " +
                      std::string(dtype_name(options.dtype)));
  }
  if (options.shard_bytes == 0) throw ConfigError("shard_bytes must be positive");
}

}  // namespace

void fill_random_weights(std::uint64_t seed, const HfConfig& config, const std::string& name,
                         std::int64_t first, std::span<float> target) {
  if (is_norm(name)) {
    std::ranges::fill(target, 1.0f);
  } else if (is_bias(name)) {
    std::ranges::fill(target, 0.0f);
  } else {
    const NormalBlocks blocks(seed, name, config.initializer_range);
    fill_normal(blocks, static_cast<std::uint64_t>(first), target);
  }
}

void make_random_model(const std::filesystem::path& folder, const RandomModelOptions& options) {
  check_options(options);
  const std::string text = hf_config_text(options.config, options.dtype);
  const HfConfig config = parse_hf_config(text, "the random model's config.json");
  const std::vector<ExpectedTensor> tensors = llama_tensors(config);
  const std::uint64_t bytes = options.shape_only ? 0 : shard_bytes_needed(tensors, options.dtype);
  StagedFolder staged(folder, bytes + text.size());
  write_text_file(staged.path() / "config.json", text);
  if (!options.shape_only) {
    write_shards(staged.path(), tensors, options.dtype, options.shard_bytes, RandomSource(options));
  }
  staged.commit();
}

}  // namespace strata
