#include "fuzz/checkpoint_inputs.hpp"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "src/checkpoint/checkpoint_manifest.hpp"

namespace strata::testing {
namespace {

CheckpointManifest manifest_of(std::vector<StateVector> vectors) {
  CheckpointManifest manifest = {.strata_version = "0.1.0",
                                 .note = {.step = 20,
                                          .updates_applied = 19,
                                          .skipped_steps = 1,
                                          .data_seed = ~std::uint64_t{0},
                                          .data_fingerprint = "d",
                                          .config = "steps: 20\n"},
                                 .vectors = std::move(vectors),
                                 .pieces = {}};
  for (std::size_t i = 0; i < manifest.vectors.size(); ++i) {
    const std::int64_t count = manifest.vectors[i].count;
    for (std::int64_t at = 0; at < count; at += norm_chunk_elements)
      manifest.pieces.push_back({static_cast<int>(i), at, std::min(norm_chunk_elements, count - at),
                                 0x0123456789abcdef * static_cast<std::uint64_t>(at + 1)});
  }
  return manifest;
}

}  // namespace

std::vector<std::vector<std::byte>> checkpoint_manifest_seeds() {
  std::vector<std::vector<std::byte>> seeds;
  for (const CheckpointManifest& manifest :
       {manifest_of({{Role::master, "layers.3", DType::f32, 3 * norm_chunk_elements + 17}}),
        manifest_of({{Role::weight, "a", DType::bf16, 5}, {Role::moment1, "a", DType::q8, 5000}}),
        manifest_of({})}) {
    const std::string text = checkpoint_json(manifest);
    const auto bytes = std::as_bytes(std::span(text));
    seeds.emplace_back(bytes.begin(), bytes.end());
  }
  return seeds;
}

}  // namespace strata::testing
