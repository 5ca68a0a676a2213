#pragma once
// Which checkpoint of an output folder is the best. Each tells the held-out loss of its state, if
// it was evaluated, and nothing else does: so the answer is right whatever dies when.
// Thread contract: pure functions, some of the disk.

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "strata/checkpoint/state_checkpoint.hpp"

namespace strata {

using HeldOutLosses = std::map<std::int64_t, HeldOutLoss>;  // by step; of those that have one

// What the checkpoints of a folder say. Damaged ones are passed over, for nothing of them can be
// used. Throws SystemError when the disk fails, which is no answer.
HeldOutLosses held_out_losses(IoEngine& engine, const std::string& directory);

// The step of the least loss, of several the earliest, among those taken on the data of this
// fingerprint; where none is given, on that of the last of them.
std::optional<std::int64_t> best_step(const HeldOutLosses& losses,
                                      const std::optional<std::string>& data = {});

struct BestCheckpoint {
  CheckpointEntry entry;
  HeldOutLoss held_out;
};
// Both in one.
std::optional<BestCheckpoint> best_checkpoint(IoEngine& engine, const std::string& directory,
                                              const std::optional<std::string>& data = {});

}  // namespace strata
