#include "strata/checkpoint/best_checkpoint.hpp"

#include "checkpoint_names.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

std::optional<HeldOutLoss> held_out_of(IoEngine& engine, const CheckpointEntry& entry) {
  try {
    return CheckpointReader::open(engine, entry.path)->info().note.held_out;
  } catch (const FormatError&) {
    return std::nullopt;
  }
}

}  // namespace

HeldOutLosses held_out_losses(IoEngine& engine, const std::string& directory) {
  HeldOutLosses losses;
  for (const CheckpointEntry& entry : list_checkpoints(engine.file_system(), directory))
    if (const auto held_out = held_out_of(engine, entry)) losses[entry.step] = *held_out;
  return losses;
}

std::optional<std::int64_t> best_step(const HeldOutLosses& losses,
                                      const std::optional<std::string>& data) {
  if (losses.empty()) return std::nullopt;
  const std::string& same = data ? *data : losses.rbegin()->second.data;
  auto best = losses.end();
  for (auto one = losses.begin(); one != losses.end(); ++one) {
    if (one->second.data != same) continue;
    if (best == losses.end() || one->second.loss < best->second.loss) best = one;
  }
  return best == losses.end() ? std::nullopt : std::optional(best->first);
}

std::optional<BestCheckpoint> best_checkpoint(IoEngine& engine, const std::string& directory,
                                              const std::optional<std::string>& data) {
  const HeldOutLosses losses = held_out_losses(engine, directory);
  const auto step = best_step(losses, data);
  if (!step) return std::nullopt;
  return BestCheckpoint{{*step, directory + "/" + folder_name(*step, FolderState::whole)},
                        losses.at(*step)};
}

}  // namespace strata
