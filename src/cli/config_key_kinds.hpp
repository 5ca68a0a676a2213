#pragma once
// How keys of each kind are made: what reads a value into a field of RunConfig and what writes it.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "config_choices.hpp"
#include "config_keys.hpp"

namespace strata::key_kinds {

template <typename T>
auto at(T RunConfig::*member) {
  return [member](auto& config) -> auto& { return config.*member; };
}
template <typename T>
auto at(T OffloadConfig::*member) {
  return [member](auto& config) -> auto& { return config.offload.*member; };
}

ConfigKey integer(std::string name, auto field, IntegerRange range, std::string doc) {
  return {std::move(name), describe(range), std::move(doc),
          [=](const ConfigValue& value, RunConfig& config) {
            field(config) =
                static_cast<std::remove_reference_t<decltype(field(config))>>(value.integer(range));
          },
          [=](const RunConfig& config) { return fmt::format("{}", field(config)); }};
}

ConfigKey optional_integer(std::string name, auto field, IntegerRange range, std::string doc) {
  return {
      std::move(name), describe(range), std::move(doc),
      [=](const ConfigValue& value, RunConfig& config) { field(config) = value.integer(range); },
      [=](const RunConfig& config) {
        return field(config) ? fmt::format("{}", *field(config)) : "null";
      }};
}

ConfigKey number(std::string name, auto field, NumberRange range, std::string doc) {
  return {std::move(name), describe(range), std::move(doc),
          [=](const ConfigValue& value, RunConfig& config) { field(config) = value.number(range); },
          [=](const RunConfig& config) { return yaml_number(field(config)); }};
}

ConfigKey optional_number(std::string name, auto field, NumberRange range, std::string doc) {
  return {std::move(name), describe(range), std::move(doc),
          [=](const ConfigValue& value, RunConfig& config) { field(config) = value.number(range); },
          [=](const RunConfig& config) {
            return field(config) ? yaml_number(*field(config)) : "null";
          }};
}

ConfigKey boolean(std::string name, auto field, std::string doc) {
  return {std::move(name), "true or false", std::move(doc),
          [=](const ConfigValue& value, RunConfig& config) { field(config) = value.boolean(); },
          [=](const RunConfig& config) { return field(config) ? "true" : "false"; }};
}

ConfigKey path(std::string name, auto field, std::string doc) {
  return {std::move(name), "path", std::move(doc),
          [=](const ConfigValue& value, RunConfig& config) { field(config) = value.text(); },
          [=](const RunConfig& config) { return yaml_text(field(config).string()); }};
}

ConfigKey optional_path(std::string name, auto field, std::string doc) {
  return {std::move(name), "path", std::move(doc),
          [=](const ConfigValue& value, RunConfig& config) { field(config) = value.text(); },
          [=](const RunConfig& config) {
            return field(config) ? yaml_text(field(config)->string()) : "null";
          }};
}

ConfigKey paths(std::string name, auto field, std::string doc) {
  return {std::move(name), "path or list of paths", std::move(doc),
          [=](const ConfigValue& value, RunConfig& config) {
            const std::vector<std::string> items = value.list();
            field(config).assign(items.begin(), items.end());
          },
          [=](const RunConfig& config) {
            return yaml_list(std::vector<std::string>(field(config).begin(), field(config).end()));
          }};
}

ConfigKey numbers(std::string name, auto field, NumberRange range, std::string doc) {
  return {
      std::move(name), "list, each a " + describe(range), std::move(doc),
      [=](const ConfigValue& value, RunConfig& config) { field(config) = value.numbers(range); },
      [=](const RunConfig& config) { return yaml_numbers(field(config)); }};
}

ConfigKey size(std::string name, auto field, std::string doc) {
  return {std::move(name), "size, such as 256MiB", std::move(doc),
          [=](const ConfigValue& value, RunConfig& config) { field(config) = value.bytes(); },
          [=](const RunConfig& config) { return yaml_bytes(field(config)); }};
}

ConfigKey optional_size(std::string name, auto field, std::string doc) {
  return {
      std::move(name), "size, such as 256MiB", std::move(doc),
      [=](const ConfigValue& value, RunConfig& config) { field(config) = value.bytes(); },
      [=](const RunConfig& config) { return field(config) ? yaml_bytes(*field(config)) : "null"; }};
}

ConfigKey tiers(std::string name, auto field, std::string doc) {
  return {std::move(name),
          "tier table",
          std::move(doc),
          [=](const ConfigValue& value, RunConfig& config) { field(config) = value.fractions(); },
          [=](const RunConfig& config) { return yaml_fractions(field(config)); },
          KeyShape::tier_table};
}

template <typename T>
ConfigKey choice(std::string name, auto field, Choices<T> choices, std::string doc) {
  return {
      std::move(name), "one of " + choices.joined(), std::move(doc),
      [=](const ConfigValue& value, RunConfig& config) { field(config) = choices.parse(value); },
      [=](const RunConfig& config) { return choices.name_of(field(config)); }};
}

ConfigKey word(std::string name, auto field, const std::vector<std::string>& words,
               std::string doc) {
  Choices<std::string> choices;
  for (const std::string& item : words) choices.names.emplace_back(item, item);
  return choice<std::string>(std::move(name), field, std::move(choices), std::move(doc));
}

// Micro-batches that pass each block together: a number, or the words for one and for all.
ConfigKey accumulation_group(std::string name, auto field, std::string doc) {
  const IntegerRange range{.low = 1, .high = 1 << 16};
  return {
      std::move(name), "horizontal, vertical or " + describe(range), std::move(doc),
      [=](const ConfigValue& value, RunConfig& config) {
        const std::string text = value.text();
        if (text != "horizontal" && text != "vertical" &&
            text.find_first_not_of("0123456789+-") != std::string::npos)
          value.fail(fmt::format("'{}' is neither horizontal, vertical nor a number", text));
        field(config) = text == "horizontal" ? 1 : text == "vertical" ? 0 : value.integer(range);
      },
      [=](const RunConfig& config) -> std::string {
        const std::int64_t group = field(config);
        return group == 0 ? "vertical" : group == 1 ? "horizontal" : fmt::format("{}", group);
      }};
}

ConfigKey keep_layers(std::string name, auto field, std::string doc) {
  const IntegerRange range{.low = 0, .high = 1 << 16};
  return {std::move(name), "all or " + describe(range), std::move(doc),
          [=](const ConfigValue& value, RunConfig& config) {
            const std::string text = value.text();
            if (text != "all" && text.find_first_not_of("0123456789+-") != std::string::npos)
              value.fail(fmt::format("'{}' is neither all nor a number", text));
            field(config) = text == "all" ? all_layers : value.integer(range);
          },
          [=](const RunConfig& config) -> std::string {
            return field(config) == all_layers ? "all" : fmt::format("{}", field(config));
          }};
}

// A number of steps, or a share of all of them.
ConfigKey steps(std::string name, auto field, NumberRange range, std::string doc) {
  const std::string least = range.low_bound == Bound::inclusive ? "0" : "1";
  return {std::move(name), "integer >= " + least + ", or a share of all steps below 1",
          std::move(doc),
          [=](const ConfigValue& value, RunConfig& config) {
            field(config) = value.number(range);
            if (field(config) >= 1 && field(config) != std::trunc(field(config)))
              value.fail(fmt::format(
                  "'{}' is neither a whole number of steps nor a share of all steps below 1",
                  value.text()));
          },
          [=](const RunConfig& config) { return yaml_number(field(config)); }};
}

}  // namespace strata::key_kinds
