#pragma once
// The rotary position settings of a config.json, in either spelling: rope_theta + rope_scaling
// (transformers 4) or rope_parameters (transformers 5).

#include "json_fields.hpp"
#include "strata/checkpoint/hf_folder.hpp"

namespace strata {

// Fills the rope fields of `config`. Throws ConfigError when the spellings disagree or the type is
// not supported.
void read_rope(const JsonFields& root, HfConfig& config);

}  // namespace strata
