#pragma once
// The model classes that compute the layers of Llama, and what sets them apart in a config.json.

#include <span>
#include <string_view>

#include "json_fields.hpp"
#include "strata/checkpoint/hf_folder.hpp"

namespace strata {

// Which attention projections have biases.
enum class AttentionBiases : std::uint8_t { as_stated, query_key_value, none };

// How 'sliding_window' is meant, which no class here may make use of.
enum class WindowRule : std::uint8_t {
  unless_switched_off,  // by use_sliding_window
  if_switched_on,
  always,  // and there is a window when the key is absent
};

struct ModelFamily {
  std::string_view architecture, model_type;
  AttentionBiases biases;
  WindowRule window;
};

// From 'architectures' and 'model_type', which must agree. Throws ConfigError by name for others.
const ModelFamily& read_family(const JsonFields& root);

// Throw ConfigError for what the class would compute and Strata would not.
void refuse_windows(const JsonFields& root, const ModelFamily& family);
void read_biases(const JsonFields& root, const ModelFamily& family, HfConfig& config);

}  // namespace strata
