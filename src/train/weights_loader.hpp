#pragma once
// A WeightsLoader fills the tiles of model state that a rank holds from a Hugging Face folder, one
// place of a block at a time: whoever holds both the weight and the master of a place reads its
// elements once. No rank reads what it does not hold. Thread contract: one thread.

#include <filesystem>
#include <span>
#include <vector>

#include "strata/checkpoint/hf_folder.hpp"
#include "strata/runtime/state_access.hpp"
#include "strata/train/planned_run.hpp"

namespace strata {

class WeightsLoader {
 public:
  // Throws FormatError when the folder does not hold the model's tensors.
  WeightsLoader(const std::filesystem::path& folder, const PlannedRun& run, StateAccess& state);

  void load();

  // Of host memory, beside the plan's.
  static std::uint64_t buffer_bytes(const Program& program);

 private:
  void load_block(int block);
  void clear_moments();
  std::span<const float> read(const BlockSpec& block, std::int64_t begin, std::int64_t count);
  void store(ShardId shard, int tile, std::span<const float> values);

  const Program& program_;
  const Model& model_;
  StateAccess& state_;
  HfWeights weights_;
  std::vector<float> values_;  // of one tile
};

}  // namespace strata
