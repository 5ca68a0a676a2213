#include "rope_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "display.hpp"

namespace strata {
namespace {

using nlohmann::json;

struct Scaling {
  std::string type = "default";
  double factor = 0, low = 0, high = 0, original_max_positions = 0;
  bool operator==(const Scaling&) const = default;
};

// What one spelling states; what it leaves out it does not contradict.
struct Statement {
  std::optional<double> theta;
  std::optional<Scaling> scaling;
};

void check_keys(const JsonFields& fields, const json& object) {
  constexpr std::array known{"rope_type",
                             "type",
                             "rope_theta",
                             "factor",
                             "low_freq_factor",
                             "high_freq_factor",
                             "original_max_position_embeddings",
                             "partial_rotary_factor"};
  for (const auto& [key, value] : object.items()) {
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
  if (type != "default" && type != "llama3") {
    fields.refuse(
        fmt::format("rope_type {} is not supported; supported: default, llama3", quote_name(type)));
  }
  return type;
}

double required(const JsonFields& fields, const char* key) {
  const auto value = fields.positive(key);
  if (!value) fields.refuse(fmt::format("rope_type llama3 needs '{}'", key));
  return *value;
}

Scaling llama3_scaling(const JsonFields& fields) {
  Scaling scaling{.type = "llama3",
                  .factor = required(fields, "factor"),
                  .low = required(fields, "low_freq_factor"),
                  .high = required(fields, "high_freq_factor"),
                  .original_max_positions = required(fields, "original_max_position_embeddings")};
  if (scaling.factor < 1) fields.refuse("'factor' must be at least 1");
  if (scaling.low >= scaling.high) {
    fields.refuse("'low_freq_factor' must be less than 'high_freq_factor'");
  }
  return scaling;
}

Statement read_object(const JsonFields& root, const char* key) {
  const json* object = root.find(key);
  if (object == nullptr) return {};
  const JsonFields fields(*object, fmt::format("{}: '{}'", root.source(), key));
  check_keys(fields, *object);
  if (fields.number("partial_rotary_factor").value_or(1) != 1) {
    fields.refuse("partial_rotary_factor other than 1 is not supported");
  }
  const std::string type = rope_type(fields);
  return {.theta = fields.positive("rope_theta"),
          .scaling = type == "llama3" ? llama3_scaling(fields) : Scaling{}};
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
  if (scaling.type != "llama3") return;
  config.rope_factor = scaling.factor;
  config.rope_low_freq_factor = scaling.low;
  config.rope_high_freq_factor = scaling.high;
  config.rope_original_max_positions = scaling.original_max_positions;
}

}  // namespace strata
