#include "model_family.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "display.hpp"
#include "name_list.hpp"

namespace strata {
namespace {

using nlohmann::json;

constexpr std::array<ModelFamily, 4> families{
    {{"LlamaForCausalLM", "llama", ProjectionBiases::as_stated, WindowRule::unless_switched_off,
      HeadNorms::none},
     {"Qwen2ForCausalLM", "qwen2", ProjectionBiases::query_key_value, WindowRule::if_switched_on,
      HeadNorms::none},
     {"Qwen3ForCausalLM", "qwen3", ProjectionBiases::attention_as_stated,
      WindowRule::if_switched_on, HeadNorms::query_key},
     {"MistralForCausalLM", "mistral", ProjectionBiases::none, WindowRule::always,
      HeadNorms::none}}};

// Those that people ask for, and why it is not just another name.
struct KnownArchitecture {
  std::string_view name, difference;
};
constexpr std::array<KnownArchitecture, 2> known_architectures{
    {{"MixtralForCausalLM", " (its layers are mixtures of experts)"},
     {"Qwen3MoeForCausalLM", " (its layers are mixtures of experts)"}}};

std::string_view difference_of(std::string_view architecture) {
  const auto* found =
      std::ranges::find(known_architectures, architecture, &KnownArchitecture::name);
  return found == known_architectures.end() ? std::string_view() : found->difference;
}

std::string names_of(std::string_view ModelFamily::*name) {
  NameList names;
  for (const ModelFamily& family : families) names.add(std::string(family.*name));
  return names.text();
}

[[noreturn]] void refuse_architecture(const JsonFields& root, const std::string& name) {
  root.refuse(fmt::format("the model class {}{} is not supported; supported: {}", quote_name(name),
                          difference_of(name), names_of(&ModelFamily::architecture)));
}

const ModelFamily* find_family(std::string_view ModelFamily::*key, std::string_view name) {
  const auto* found = std::ranges::find(families, name, key);
  return found == families.end() ? nullptr : found;
}

std::optional<std::string> stated_architecture(const JsonFields& root) {
  const json* names = root.find("architectures");
  if (names == nullptr || (names->is_array() && names->empty())) return std::nullopt;
  if (!names->is_array() || names->size() != 1 || !names->front().is_string()) {
    root.bad_format("'architectures' is not a list of one name");
  }
  return names->front().get<std::string>();
}

const ModelFamily* family_of_architecture(const JsonFields& root) {
  const auto stated = stated_architecture(root);
  if (!stated) return nullptr;
  const ModelFamily* family = find_family(&ModelFamily::architecture, *stated);
  if (family == nullptr) refuse_architecture(root, *stated);
  return family;
}

const ModelFamily* family_of_model_type(const JsonFields& root) {
  const auto stated = root.text("model_type");
  if (!stated) return nullptr;
  const ModelFamily* family = find_family(&ModelFamily::model_type, *stated);
  if (family == nullptr) {
    root.refuse(fmt::format("model_type {} is not supported; supported: {}", quote_name(*stated),
                            names_of(&ModelFamily::model_type)));
  }
  return family;
}

bool has_window(const json& layer_type) { return layer_type == "sliding_attention"; }

// Whether some layers are said to have the window and others not; any others are refused.
bool names_layers_with_window(const JsonFields& root) {
  const json* types = root.find("layer_types");
  if (types == nullptr) return false;
  if (!types->is_array()) root.bad_format("'layer_types' is no list");
  const auto is_known = [](const json& type) {
    return type == "full_attention" || has_window(type);
  };
  if (!std::ranges::all_of(*types, is_known)) {
    root.refuse("'layer_types' other than full_attention and sliding_attention are not supported");
  }
  return std::ranges::any_of(*types, has_window);
}

// A token attends to so many, itself included; 0: to all before it.
std::int64_t window_in_force(const JsonFields& root, const ModelFamily& family) {
  constexpr std::int64_t window_max = (std::int64_t{1} << 31) - 1;
  constexpr std::int64_t transformers_default = 4096;  // of every class that has windows
  const bool by_default = family.window != WindowRule::if_switched_on;
  const bool is_off = family.window != WindowRule::always &&
                      !root.boolean("use_sliding_window").value_or(by_default);
  if (is_off || root.is_null("sliding_window")) return 0;
  const bool is_implied = family.window != WindowRule::unless_switched_off;
  return root.integer("sliding_window", 1, window_max)
      .value_or(is_implied ? transformers_default : 0);
}

}  // namespace

const ModelFamily& read_family(const JsonFields& root) {
  const ModelFamily* by_name = family_of_architecture(root);
  const ModelFamily* by_type = family_of_model_type(root);
  if (by_name == nullptr && by_type == nullptr)
    root.refuse("neither 'architectures' nor 'model_type' is given");
  if (by_name != nullptr && by_type != nullptr && by_name != by_type) {
    root.refuse(fmt::format("'architectures' {} and model_type {} disagree", by_name->architecture,
                            by_type->model_type));
  }
  return by_name != nullptr ? *by_name : *by_type;
}

// Of layers with and without a window the whole model is taken to have it: what is computed is the
// same where no sequence is longer.
void read_window(const JsonFields& root, const ModelFamily& family, HfConfig& config) {
  config.sliding_window = window_in_force(root, family);
  if (names_layers_with_window(root) && config.sliding_window == 0)
    root.refuse("'layer_types' has sliding_attention, but no 'sliding_window' is in force");
}

void read_biases(const JsonFields& root, const ModelFamily& family, HfConfig& config) {
  const bool attention = root.boolean("attention_bias").value_or(false);
  const bool mlp = root.boolean("mlp_bias").value_or(false);
  const ProjectionBiases rule = family.biases;
  if (mlp && rule != ProjectionBiases::as_stated)
    root.refuse(
        fmt::format("{} has no biases in its mlp, but 'mlp_bias' is true", family.architecture));
  if (attention && rule == ProjectionBiases::none)
    root.refuse(fmt::format("{} has no biases in its attention, but 'attention_bias' is true",
                            family.architecture));
  config.attention_bias = attention || rule == ProjectionBiases::query_key_value;
  config.attention_output_bias = rule != ProjectionBiases::query_key_value;
  config.mlp_bias = mlp;
}

}  // namespace strata
