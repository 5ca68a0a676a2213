#include "config_tiers.hpp"

#include <fmt/format.h>

#include <array>
#include <optional>

#include "config_value.hpp"

namespace strata {
namespace {

constexpr double fraction_tolerance = 1e-9;  // 0.1 + 0.2 + 0.7 is not 1 in binary
constexpr NumberRange fraction{.high = 1, .high_bound = Bound::inclusive};

// What a table lists, by tier.
struct Listed {
  std::array<std::optional<double>, num_tiers> values;

  std::optional<double>& at(Tier tier) { return values[static_cast<std::size_t>(tier)]; }
  bool has(Tier tier) const { return values[static_cast<std::size_t>(tier)].has_value(); }
  double value(Tier tier) const { return values[static_cast<std::size_t>(tier)].value_or(0); }
  TierFractions fractions() const {
    return {value(Tier::device), value(Tier::host), value(Tier::nvme)};
  }
};

std::optional<Tier> parse_tier(std::string_view name) {
  if (name == "gpu") return Tier::device;
  if (name == "cpu") return Tier::host;
  if (name == "nvme") return Tier::nvme;
  return std::nullopt;
}

Tier tier_named(const std::string& name, const ConfigValue& table) {
  if (const auto tier = parse_tier(name)) return *tier;
  table.fail(fmt::format("unknown tier '{}': known are gpu, cpu and nvme", name));
}

// The tier that takes what the listed fractions leave over: the next slower one; cpu when nvme
// itself is listed.
std::optional<Tier> remainder_tier(const Listed& listed) {
  if (!listed.has(Tier::nvme)) return listed.has(Tier::host) ? Tier::nvme : Tier::host;
  return listed.has(Tier::host) ? std::nullopt : std::optional(Tier::host);
}

void place_remainder(Listed& listed, const ConfigValue& table) {
  const auto [gpu, cpu, nvme] = listed.fractions();
  const double sum = gpu + cpu + nvme;
  const std::string shown = fmt::format("gpu {} + cpu {} + nvme {} is {:.6g}", gpu, cpu, nvme, sum);
  if (sum > 1 + fraction_tolerance) table.fail(shown + ", more than 1");
  if (sum >= 1 - fraction_tolerance) return;
  const auto tier = remainder_tier(listed);
  if (!tier) {
    table.fail(shown + ", less than 1, and no tier is slower than nvme: make them sum to 1");
  }
  listed.at(*tier) = 1 - sum;
}

Listed read_listed(const YAML::Node& node, const std::string& key, const std::string& where) {
  const ConfigValue table(node, key, where);
  Listed listed;
  for (const auto& entry : node) {
    const std::string name = entry.first.IsScalar() ? entry.first.Scalar() : "";
    const Tier tier = tier_named(name, table);
    if (listed.has(tier)) table.fail(fmt::format("{} is listed twice", name));
    listed.at(tier) = ConfigValue(entry.second, key + "." + name, where).number(fraction);
  }
  return listed;
}

// DeepSpeed's {device: nvme, ratio: 0.6}: as there, the rest stays on the GPU.
TierFractions read_device_and_ratio(const YAML::Node& node, const std::string& key,
                                    const std::string& where) {
  const ConfigValue table(node, key, where);
  for (const auto& entry : node) {
    const std::string name = entry.first.IsScalar() ? entry.first.Scalar() : "";
    if (name == "device" || name == "ratio") continue;
    table.fail(fmt::format("unknown key '{}' beside device and ratio", name));
  }
  const std::string device = ConfigValue(node["device"], key + ".device", where).text();
  const auto tier = device == "none" ? Tier::device : parse_tier(device);
  if (!tier) table.fail("device must be gpu, cpu or nvme");
  const YAML::Node given = node["ratio"];
  const double ratio = given ? ConfigValue(given, key + ".ratio", where).number(fraction) : 1;
  Listed listed;
  listed.at(Tier::device) = 1 - ratio;
  listed.at(*tier) = *tier == Tier::device ? 1 : ratio;
  return listed.fractions();
}

}  // namespace

TierFractions read_fractions(const YAML::Node& node, const std::string& key,
                             const std::string& where) {
  const ConfigValue table(node, key, where);
  Listed listed;
  if (node.IsScalar()) {
    listed.at(tier_named(node.Scalar(), table)) = 1;
    return listed.fractions();
  }
  if (!node.IsMap() || node.size() == 0) {
    table.fail("expected a tier or a table such as {gpu: 0.1, cpu: 0.4, nvme: 0.5}");
  }
  if (node["device"]) return read_device_and_ratio(node, key, where);
  listed = read_listed(node, key, where);
  place_remainder(listed, table);
  return listed.fractions();
}

}  // namespace strata
