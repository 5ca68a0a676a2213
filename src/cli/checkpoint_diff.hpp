#pragma once
// What differs between two checkpoints. Thread contract: pure.

#include <string>

#include "strata/checkpoint/state_checkpoint.hpp"

namespace strata {

struct CheckpointDiff {
  bool equal = true;  // note and bytes
  std::string text;   // a line per note's field and vector that differs, and a sum
};
CheckpointDiff diff_checkpoints(const CheckpointReader& one, const CheckpointReader& other);

}  // namespace strata
