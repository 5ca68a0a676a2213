#include "model_family.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "display.hpp"
#include "name_list.hpp"

namespace strata {
namespace {

using nlohmann::json;

constexpr std::array<ModelFamily, 3> families{
    {{"LlamaForCausalLM", "llama", AttentionBiases::as_stated, WindowRule::unless_switched_off},
     {"Qwen2ForCausalLM", "qwen2", AttentionBiases::query_key_value, WindowRule::if_switched_on},
     {"MistralForCausalLM", "mistral", AttentionBiases::none, WindowRule::always}}};

// Those that people ask for, and why it is not just another name.
struct KnownArchitecture {
  std::string_view name, difference;
};
constexpr std::array<KnownArchitecture, 1> known_architectures{
    {{"Qwen3ForCausalLM", " (it normalises each head's q and k)"}}};

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

void refuse_layer_types(const JsonFields& root) {
  const json* types = root.find("layer_types");
  if (types == nullptr) return;
  if (!types->is_array()) root.bad_format("'layer_types' is no list");
  if (std::ranges::any_of(*types, [](const json& type) { return type != "full_attention"; }))
    root.refuse("'layer_types' other than full_attention are not supported");
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

void refuse_windows(const JsonFields& root, const ModelFamily& family) {
  refuse_layer_types(root);
  const bool is_always = family.window == WindowRule::always;
  const bool by_default = family.window != WindowRule::if_switched_on;
  const bool is_used = is_always || root.boolean("use_sliding_window").value_or(by_default);
  if (root.has("sliding_window") && is_used)
    root.refuse("sliding_window attention is not supported");
  if (is_always && !root.has("sliding_window") && !root.is_null("sliding_window")) {
    root.refuse(
        fmt::format("without 'sliding_window' {} has a window, which is not supported; "
                    "null says that there is none",
                    family.architecture));
  }
}

void read_biases(const JsonFields& root, const ModelFamily& family, HfConfig& config) {
  const bool attention = root.boolean("attention_bias").value_or(false);
  const bool mlp = root.boolean("mlp_bias").value_or(false);
  const bool is_stated = family.biases == AttentionBiases::as_stated;
  if (mlp && !is_stated)
    root.refuse(
        fmt::format("{} has no biases in its mlp, but 'mlp_bias' is true", family.architecture));
  if (attention && family.biases == AttentionBiases::none)
    root.refuse(fmt::format("{} has no biases in its attention, but 'attention_bias' is true",
                            family.architecture));
  config.attention_bias = attention || family.biases == AttentionBiases::query_key_value;
  config.attention_output_bias = family.biases != AttentionBiases::query_key_value;
  config.mlp_bias = mlp;
}

}  // namespace strata
