#pragma once
// A small Program with every kind of use, and a model and optimizer for it whose arithmetic is
// exact enough to compare bits: the tests of planner and executor run on it.

#include <cstdint>
#include <string>

#include "strata/program/program.hpp"

namespace strata::testing {

// What updates do with the weight: write it from the master and two moments, or read and write it
// beside a master that is not whole without it and one moment.
enum class ToyUpdate : std::uint8_t { produces_weight, updates_weight };

struct ToyShape {
  int layers = 4;
  int micro_batches = 1;
  int group = 1;                        // micro-batches that pass each block together
  int kept_layers = 0;                  // the last so many save what backward needs
  std::int64_t layer_elements = 10000;  // no multiple of a tile
  std::int64_t embedding_elements = 30000;
  std::int64_t tokens = 64, hidden = 16;
  std::int64_t tile_elements = 4096;
  bool tied = true;
  ToyUpdate update = ToyUpdate::produces_weight;
  DType contribution_dtype = DType::f32;  // or bf16
  int world = 1, rank = 0, zero_stage = 3;
};

Program make_toy_program(const ToyShape& shape);
// The same Program with split masters and q8 moments: other bytes, and updates that read the
// weight. To be planned, not to be run.
Program with_split_masters(Program program);

}  // namespace strata::testing
