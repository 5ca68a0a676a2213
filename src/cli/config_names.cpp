#include "config_names.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace strata {
namespace {

bool is_zero(const std::string& text) {
  double value = 1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value == 0;
}

}  // namespace

bool matches_name(std::string_view pattern, std::string_view name) {
  if (!pattern.ends_with('*')) return pattern == name;
  return name.starts_with(pattern.substr(0, pattern.size() - 1));
}

const std::vector<RenamedKey>& renamed_keys() {
  static const std::vector<RenamedKey> keys{
      {"evaluation_strategy", "eval_strategy"},
      {"warmup_ratio", "warmup_steps"},
      {"per_gpu_train_batch_size", "per_device_train_batch_size"},
      {"per_gpu_eval_batch_size", "per_device_eval_batch_size"},
      {"lr_scheduler_kwargs.min_lr_rate", "lr_scheduler_kwargs.min_lr_ratio", OldName::synonym},
      {"offload.params", "offload.weights"},
      {"offload.grads", "offload.gradients"},
  };
  return keys;
}

const RenamedKey* find_renamed(std::string_view name) {
  const auto found = std::ranges::find(renamed_keys(), name, &RenamedKey::old_name);
  return found == renamed_keys().end() ? nullptr : &*found;
}

const std::vector<TranslatedKey>& translated_keys() {
  static const std::vector<TranslatedKey> keys{
      {"use_cpu", "true", "device", "cpu"},
      {"no_cuda", "true", "device", "cpu"},
      {"offload.ratio", "auto", "offload.auto", "true"},
  };
  return keys;
}

const TranslatedKey* find_translated(std::string_view name, const YAML::Node& value) {
  const std::string text = normalised_value(value);
  const auto found = std::ranges::find_if(translated_keys(), [&](const TranslatedKey& key) {
    return key.name == name && key.value == text;
  });
  return found == translated_keys().end() ? nullptr : &*found;
}

const RecognisedKey* find_recognised(std::string_view name) {
  const auto found = std::ranges::find_if(
      recognised_keys(), [&](const RecognisedKey& key) { return matches_name(key.name, name); });
  return found == recognised_keys().end() ? nullptr : &*found;
}

bool accepts(const RecognisedKey& key, const YAML::Node& value) {
  const std::string text = normalised_value(value);
  if (text == "null") return true;
  return std::ranges::any_of(key.accepted,
                             [&](const std::string& item) { return item == "*" || item == text; });
}

std::string normalised_value(const YAML::Node& value) {
  if (!value.IsDefined() || value.IsNull()) return "null";
  if (value.IsSequence() && value.size() == 1) return normalised_value(value[0]);
  if (!value.IsScalar()) return value.size() == 0 ? "null" : "...";
  std::string text = value.Scalar();
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (text.empty()) return "null";
  if (is_zero(text)) return "0";
  bool boolean = false;
  if (!YAML::convert<bool>::decode(value, boolean)) return text;
  return boolean ? "true" : "false";
}

}  // namespace strata
