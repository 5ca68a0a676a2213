#include "rope_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "display.hpp"

namespace strata {
namespace {

using nlohmann::json;

struct Scaling {
  std::string type = "default";
  double factor = 0, low = 0, high = 0, original_max_positions = 0;
  double beta_fast = 0, beta_slow = 0, attention_factor = 1;
  bool truncates = true;
  bool operator==(const Scaling&) const = default;
};

// What one spelling states; what it leaves out it does not contradict.
struct Statement {
  std::optional<double> theta;
  std::optional<Scaling> scaling;
};

bool is_yarn_key(std::string_view key) {
  constexpr std::array keys{"beta_fast", "beta_slow",      "attention_factor",
                            "mscale",    "mscale_all_dim", "truncate"};
  return std::ranges::find(keys, key) != keys.end();
}

void check_keys(const JsonFields& fields, const json& object, const std::string& type) {
  constexpr std::array known{"rope_type",
                             "type",
                             "rope_theta",
                             "factor",
                             "low_freq_factor",
                             "high_freq_factor",
                             "original_max_position_embeddings",
                             "partial_rotary_factor"};
  for (const auto& [key, value] : object.items()) {
    if (type == "yarn" && is_yarn_key(key)) continue;
    if (std::ranges::find(known, key) == known.end()) {
      fields.refuse(fmt::format("{} is not supported", quote_name(key)));
    }
  }
}

std::string rope_type(const JsonFields& fields) {
  const auto now = fields.text("rope_type"), before = fields.text("type");
  if (now && before && *now != *before) {
    fields.refuse(fmt::format("'rope_type' {} and 'type' {} disagree", quote_name(*now),
                              quote_name(*before)));
  }
  const std::string type = now.value_or(before.value_or("default"));
  constexpr std::array supported{"default", "linear", "llama3", "yarn"};
  if (std::ranges::find(supported, type) == supported.end()) {
    fields.refuse(
        fmt::format("rope_type {} is not supported; supported: default, linear, llama3, yarn",
                    quote_name(type)));
  }
  return type;
}

double required(const JsonFields& fields, const std::string& type, const char* key) {
  const auto value = fields.positive(key);
  if (!value) fields.refuse(fmt::format("rope_type {} needs '{}'", type, key));
  return *value;
}

Scaling linear_scaling(const JsonFields& fields) {
  return {.type = "linear", .factor = required(fields, "linear", "factor")};
}

Scaling llama3_scaling(const JsonFields& fields) {
  const auto needed = [&](const char* key) { return required(fields, "llama3", key); };
  Scaling scaling{.type = "llama3",
                  .factor = needed("factor"),
                  .low = needed("low_freq_factor"),
                  .high = needed("high_freq_factor"),
                  .original_max_positions = needed("original_max_position_embeddings")};
  if (scaling.low >= scaling.high) {
    fields.refuse("'low_freq_factor' must be less than 'high_freq_factor'");
  }
  return scaling;
}

// The paper's: what attention is the sharper for, where positions are squeezed by `factor`.
double yarn_sharpness(double factor, double weight) {
  return factor <= 1 ? 1 : 0.1 * weight * std::log(factor) + 1;
}

double yarn_attention_factor(const JsonFields& fields, double factor) {
  if (const auto stated = fields.positive("attention_factor")) return *stated;
  const double above = fields.number("mscale").value_or(0),
               below = fields.number("mscale_all_dim").value_or(0);
  if (above == 0 || below == 0) return yarn_sharpness(factor, 1);
  const double ratio = yarn_sharpness(factor, above) / yarn_sharpness(factor, below);
  if (!std::isfinite(ratio) || ratio <= 0)
    fields.refuse("'mscale' and 'mscale_all_dim' give no positive factor");
  return ratio;
}

Scaling yarn_scaling(const JsonFields& fields) {
  const auto needed = [&](const char* key) { return required(fields, "yarn", key); };
  Scaling scaling{.type = "yarn",
                  .factor = needed("factor"),
                  .original_max_positions = needed("original_max_position_embeddings"),
                  .beta_fast = fields.positive("beta_fast").value_or(32),
                  .beta_slow = fields.positive("beta_slow").value_or(1),
                  .truncates = fields.boolean("truncate").value_or(true)};
  scaling.attention_factor = yarn_attention_factor(fields, scaling.factor);
  if (scaling.beta_fast < scaling.beta_slow) {
    fields.refuse("'beta_fast' must not be less than 'beta_slow'");
  }
  return scaling;
}

Scaling read_scaling(const JsonFields& fields, const std::string& type) {
  if (type == "default") return {};
  Scaling scaling = type == "linear"   ? linear_scaling(fields)
                    : type == "llama3" ? llama3_scaling(fields)
                                       : yarn_scaling(fields);
  if (scaling.factor < 1) fields.refuse("'factor' must be at least 1");
  return scaling;
}

Statement read_object(const JsonFields& root, const char* key) {
  const json* object = root.find(key);
  if (object == nullptr) return {};
  const JsonFields fields(*object, fmt::format("{}: '{}'", root.source(), key));
  const std::string type = rope_type(fields);
  check_keys(fields, *object, type);
  if (fields.number("partial_rotary_factor").value_or(1) != 1) {
    fields.refuse("partial_rotary_factor other than 1 is not supported");
  }
  return {.theta = fields.positive("rope_theta"), .scaling = read_scaling(fields, type)};
}

void merge_theta(const JsonFields& root, Statement& all, std::optional<double> theta) {
  if (all.theta && theta && *all.theta != *theta) {
    root.refuse(fmt::format("two values of rope_theta disagree: {} and {}", *all.theta, *theta));
  }
  if (theta) all.theta = theta;
}

Statement read_both(const JsonFields& root) {
  Statement all = read_object(root, "rope_scaling");
  // To a transformers 4 loader null means unscaled, so it does state something.
  if (root.is_null("rope_scaling")) all.scaling = Scaling{};
  const Statement newer = read_object(root, "rope_parameters");
  merge_theta(root, all, root.positive("rope_theta"));
  merge_theta(root, all, newer.theta);
  if (all.scaling && newer.scaling && *all.scaling != *newer.scaling) {
    root.refuse("'rope_scaling' and 'rope_parameters' disagree");
  }
  if (newer.scaling) all.scaling = newer.scaling;
  return all;
}

}  // namespace

void read_rope(const JsonFields& root, HfConfig& config) {
  const Statement all = read_both(root);
  config.rope_theta = all.theta.value_or(config.rope_theta);
  const Scaling scaling = all.scaling.value_or(Scaling{});
  config.rope_type = scaling.type;
  if (scaling.type == "default") return;
  config.rope_factor = scaling.factor;
  if (scaling.type == "linear") return;
  config.rope_original_max_positions = scaling.original_max_positions;
  if (scaling.type == "llama3") {
    config.rope_low_freq_factor = scaling.low;
    config.rope_high_freq_factor = scaling.high;
    return;
  }
  if (config.rope_theta <= 1) root.refuse("rope_type yarn needs a rope_theta above 1");
  config.rope_beta_fast = scaling.beta_fast;
  config.rope_beta_slow = scaling.beta_slow;
  config.rope_attention_factor = scaling.attention_factor;
  config.rope_truncates = scaling.truncates;
}

}  // namespace strata
