#include "shard_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "strata/checkpoint/llama_tensors.hpp"
#include "strata/core/error.hpp"
#include "verified_file.hpp"

namespace strata {
namespace {

std::uint64_t bytes_of(const ExpectedTensor& tensor, DType dtype) {
  return static_cast<std::uint64_t>(element_count(tensor) * dtype_bytes(dtype));
}

std::string shard_name(std::size_t index, std::size_t count) {
  if (count == 1) return "model.safetensors";
  return fmt::format("model-{:05}-of-{:05}.safetensors", index + 1, count);
}

std::vector<TensorToWrite> declare(std::span<const ExpectedTensor> tensors, DType dtype) {
  std::vector<TensorToWrite> declared;
  for (const ExpectedTensor& tensor : tensors)
    declared.push_back({tensor.name, dtype, tensor.shape});
  return declared;
}

void stream_tensor(SafetensorsWriter& writer, const ExpectedTensor& tensor, DType dtype,
                   const TensorSource& source, std::vector<std::byte>& buffer) {
  const std::int64_t count = element_count(tensor);
  for (std::int64_t first = 0; first < count; first += source_chunk_elements) {
    const std::int64_t piece = std::min(source_chunk_elements, count - first);
    const auto bytes =
        std::span(buffer).first(static_cast<std::size_t>(piece * dtype_bytes(dtype)));
    source(tensor.name, first, dtype, bytes);
    writer.append(bytes);
  }
}

void write_shard(const std::filesystem::path& path, std::span<const ExpectedTensor> tensors,
                 DType dtype, const TensorSource& source, std::vector<std::byte>& buffer) {
  SafetensorsWriter writer(path, declare(tensors, dtype));
  for (const ExpectedTensor& tensor : tensors) stream_tensor(writer, tensor, dtype, source, buffer);
  writer.finish();
}

std::string index_text(std::span<const ExpectedTensor> tensors, std::span<const ShardRange> shards,
                       DType dtype) {
  nlohmann::json map = nlohmann::json::object();
  for (std::size_t shard = 0; shard < shards.size(); ++shard) {
    for (std::size_t i = shards[shard].first; i < shards[shard].last; ++i) {
      map[tensors[i].name] = shard_name(shard, shards.size());
    }
  }
  const nlohmann::json index = {{"metadata", {{"total_size", tensor_bytes(tensors, dtype)}}},
                                {"weight_map", std::move(map)}};
  return index.dump(2) + "\n";
}

}  // namespace

std::vector<ShardRange> plan_shards(std::span<const ExpectedTensor> tensors, DType dtype,
                                    std::uint64_t shard_bytes) {
  std::vector<ShardRange> shards{{0, 0}};
  std::uint64_t filled = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::uint64_t bytes = bytes_of(tensors[i], dtype);
    if (filled > 0 && filled + bytes > shard_bytes) {
      shards.push_back({i, i});
      filled = 0;
    }
    shards.back().last = i + 1;
    filled += bytes;
  }
  return shards;
}

std::uint64_t tensor_bytes(std::span<const ExpectedTensor> tensors, DType dtype) {
  std::uint64_t bytes = 0;
  for (const ExpectedTensor& tensor : tensors) bytes += bytes_of(tensor, dtype);
  return bytes;
}

std::uint64_t shard_bytes_needed(std::span<const ExpectedTensor> tensors, DType dtype) {
  constexpr std::uint64_t described_bytes = 512;  // a tensor's place in header and index, amply
  return tensor_bytes(tensors, dtype) + described_bytes * (tensors.size() + 1);
}

void write_shards(const std::filesystem::path& folder, std::span<const ExpectedTensor> tensors,
                  DType dtype, std::uint64_t shard_bytes, const TensorSource& source) {
  const std::vector<ShardRange> shards = plan_shards(tensors, dtype, shard_bytes);
  std::vector<std::byte> buffer(
      static_cast<std::size_t>(source_chunk_elements * dtype_bytes(dtype)));
  for (std::size_t shard = 0; shard < shards.size(); ++shard) {
    const auto [first, last] = shards[shard];
    write_shard(folder / shard_name(shard, shards.size()), tensors.subspan(first, last - first),
                dtype, source, buffer);
  }
  if (shards.size() == 1) return;
  write_verified_text(folder / "model.safetensors.index.json", index_text(tensors, shards, dtype));
}

}  // namespace strata
