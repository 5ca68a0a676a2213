#pragma once
// Tensors written as one model.safetensors, or as numbered shards with an index when they do not
// fit one.

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "strata/checkpoint/hf_folder.hpp"

namespace strata {

// Tensors [first, last) of a list go to one file.
struct ShardRange {
  std::size_t first = 0, last = 0;
};
// In order; a shard holds at most `shard_bytes` of data, or one larger tensor.
std::vector<ShardRange> plan_shards(std::span<const ExpectedTensor> tensors, DType dtype,
                                    std::uint64_t shard_bytes);

// Of the tensors alone.
std::uint64_t tensor_bytes(std::span<const ExpectedTensor> tensors, DType dtype);

// Bytes of all files that write_shards would make, within a few kilobytes a tensor.
std::uint64_t shard_bytes_needed(std::span<const ExpectedTensor> tensors, DType dtype);

// Elements per call of the source: bounds memory whatever the tensor.
inline constexpr std::int64_t source_chunk_elements = tensor_source_elements;

void write_shards(const std::filesystem::path& folder, std::span<const ExpectedTensor> tensors,
                  DType dtype, std::uint64_t shard_bytes, const TensorSource& source);

}  // namespace strata
