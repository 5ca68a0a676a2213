#pragma once
// The model classes that compute the layers of Llama, and what sets them apart in a config.json.

#include <span>
#include <string_view>

#include "json_fields.hpp"
#include "strata/checkpoint/hf_folder.hpp"

namespace strata {

// Which projections have biases.
enum class ProjectionBiases : std::uint8_t {
  as_stated,
  attention_as_stated,  // and none in the mlp
  query_key_value,
  none,
};

// When 'sliding_window' is in force.
enum class WindowRule : std::uint8_t {
  unless_switched_off,  // by use_sliding_window
  if_switched_on,
  always,
};

enum class HeadNorms : std::uint8_t { none, query_key };

struct ModelFamily {
  std::string_view architecture, model_type;
  ProjectionBiases biases;
  WindowRule window;
  HeadNorms head_norms;
};

// From 'architectures' and 'model_type', which must agree. Throws ConfigError by name for others.
const ModelFamily& read_family(const JsonFields& root);

// Throw ConfigError for what the class would compute and Strata would not.
void read_window(const JsonFields& root, const ModelFamily& family, HfConfig& config);
void read_biases(const JsonFields& root, const ModelFamily& family, HfConfig& config);

}  // namespace strata
