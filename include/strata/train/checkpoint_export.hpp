#pragma once
// The weights of a checkpoint as a Hugging Face folder. Needs neither GPU nor plan, and of memory a
// few pieces. Thread contract: one thread.

#include <filesystem>

#include "strata/checkpoint/state_checkpoint.hpp"
#include "strata/core/byte_watch.hpp"
#include "strata/core/dtype.hpp"

namespace strata {

// model_name_or_path of the run that wrote it. Throws ConfigError when its config names none.
std::filesystem::path model_folder_of(const CheckpointReader& checkpoint);

// Writes `target` as export_hf_folder() does, with config and tokenizer of `base`. Throws
// ConfigError when the checkpoint is of another model. `watch` is told of the bytes of weights.
void export_checkpoint(const CheckpointReader& checkpoint, const std::filesystem::path& base,
                       const std::filesystem::path& target, DType dtype,
                       const ByteWatch& watch = {});

}  // namespace strata
