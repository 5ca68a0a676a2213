#include "deepspeed_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "config_names.hpp"
#include "config_value.hpp"
#include "deepspeed_rules.hpp"
#include "strata/cli/config.hpp"

namespace strata {
namespace {

struct Leaf {
  std::string name, where;
  YAML::Node value;
};

constexpr const char* optimizer_device = "zero_optimization.offload_optimizer.device";
constexpr const char* param_device = "zero_optimization.offload_param.device";
constexpr const char* cpu_checkpointing = "activation_checkpointing.cpu_checkpointing";

std::string shown(const YAML::Node& value) {
  YAML::Emitter text;
  text.SetMapFormat(YAML::Flow);
  text.SetSeqFormat(YAML::Flow);
  text << value;
  return text.c_str();
}

bool is_auto(const YAML::Node& value) { return value.IsScalar() && value.Scalar() == "auto"; }

YAML::Node tier_table(const std::string& device, const YAML::Node& ratio) {
  YAML::Node table(YAML::NodeType::Map);
  table["device"] = device;
  if (ratio.IsDefined() && !ratio.IsNull()) table["ratio"] = ratio;
  return table;
}

bool accepts(const DeepSpeedRule& rule, const YAML::Node& value) {
  if (is_auto(value)) return true;
  return accepts(RecognisedKey{rule.name, rule.accepted, rule.reason}, value);
}

bool is_taken(const DeepSpeedRule& rule) {
  return !rule.key.empty() || rule.accepted == std::vector<std::string>{"*"};
}

std::string suggestion(const std::string& name) {
  std::vector<std::string> known;
  for (const DeepSpeedRule& rule : deepspeed_rules())
    if (is_taken(rule) && !rule.name.ends_with('*')) known.push_back(rule.name);
  const std::string nearest = nearest_name(name, known);
  return nearest.empty() ? "docs/config.md lists all that are known"
                         : fmt::format("did you mean '{}'?", nearest);
}

class DeepSpeedTranslation {
 public:
  explicit DeepSpeedTranslation(std::string source_name) : source_name_(std::move(source_name)) {}

  DeepSpeedConfig translate(const YAML::Node& root) {
    collect("", root);
    for (const Leaf& leaf : leaves_) translate(leaf);
    if (root["zero_optimization"]) place();
    name_optimizer();
    name_schedule();
    if (!without_effect_.empty())
      config_.notes.push_back(fmt::format("without effect here: {}", without_effect_));
    return std::move(config_);
  }

 private:
  void collect(const std::string& prefix, const YAML::Node& map);
  void translate(const Leaf& leaf);
  void refuse(const Leaf& leaf, const std::string& reason);
  void set(const std::string& key, YAML::Node value, const Leaf& leaf);
  void imply(const std::string& key, const std::string& value, const std::string& name);
  const Leaf* find(const std::string& name) const;
  std::string word(const std::string& name, const std::string& absent) const;

  void place();
  void place_state(const char* device, const char* table, const std::vector<std::string>& roles);
  void place_activations();
  void name_drives();
  void name_optimizer();
  void name_betas();
  void name_schedule();
  void warn_of_warmup();

  std::string source_name_;
  std::vector<Leaf> leaves_;
  std::string without_effect_;
  DeepSpeedConfig config_;
};

void DeepSpeedTranslation::collect(const std::string& prefix, const YAML::Node& map) {
  for (const auto& entry : map) {
    const std::string name = prefix + (entry.first.IsScalar() ? entry.first.Scalar() : "?");
    if (entry.second.IsMap() && entry.second.size() > 0 && find_deepspeed_rule(name) == nullptr &&
        is_deepspeed_group(name))
      collect(name + ".", entry.second);
    else
      leaves_.push_back(
          {name, fmt::format("in {}:{}", source_name_, entry.first.Mark().line + 1), entry.second});
  }
}

void DeepSpeedTranslation::translate(const Leaf& leaf) {
  if (leaf.value.IsNull() || (leaf.value.IsMap() && leaf.value.size() == 0)) return;
  const DeepSpeedRule* rule = find_deepspeed_rule(leaf.name);
  if (rule == nullptr) {
    config_.problems.push_back(fmt::format("unknown DeepSpeed key '{}' {}: {}", leaf.name,
                                           leaf.where, suggestion(leaf.name)));
  } else if (!rule->key.empty()) {
    set(rule->key, leaf.value, leaf);
  } else if (!accepts(*rule, leaf.value)) {
    refuse(leaf, rule->reason);
  } else if (rule->reason.empty()) {
    without_effect_ += (without_effect_.empty() ? "" : ", ") + leaf.name;
  }
}

void DeepSpeedTranslation::refuse(const Leaf& leaf, const std::string& reason) {
  config_.problems.push_back(fmt::format("'{}: {}' {} is not supported: {}", leaf.name,
                                         shown(leaf.value), leaf.where, reason));
}

void DeepSpeedTranslation::set(const std::string& key, YAML::Node value, const Leaf& leaf) {
  if (is_auto(value))
    return config_.notes.push_back(
        fmt::format("{} {}: auto, as {} says", leaf.name, leaf.where, key));
  config_.notes.push_back(fmt::format("{} {} is {}: {}", leaf.name, leaf.where, key, shown(value)));
  config_.settings.push_back({key, std::move(value), leaf.name, leaf.where});
}

void DeepSpeedTranslation::imply(const std::string& key, const std::string& value,
                                 const std::string& name) {
  config_.notes.push_back(
      fmt::format("{} is not given: as there, {}: {} unless it is set", name, key, value));
  config_.implied.push_back({key, YAML::Node(value), name, "in " + source_name_});
}

const Leaf* DeepSpeedTranslation::find(const std::string& name) const {
  const auto found = std::ranges::find(leaves_, name, &Leaf::name);
  return found == leaves_.end() || found->value.IsNull() ? nullptr : &*found;
}

std::string DeepSpeedTranslation::word(const std::string& name, const std::string& absent) const {
  const Leaf* leaf = find(name);
  return leaf == nullptr ? absent : normalised_value(leaf->value);
}

// DeepSpeed keeps on the GPU what it is not told to offload, and gradients where they are updated.
void DeepSpeedTranslation::place() {
  place_state(optimizer_device, "offload.optimizer",
              {"offload.master", "offload.moment1", "offload.moment2"});
  if (find("zero_optimization.stage") == nullptr)
    imply("zero_optimization.stage", "0", "zero_optimization.stage");
  place_state(param_device, "offload.weights", {"offload.weights"});
  const std::string device = word(optimizer_device, "none");
  imply("offload.gradients", device == "none" ? "gpu" : "cpu", "the gradients' device");
  place_activations();
  name_drives();
}

void DeepSpeedTranslation::place_state(const char* device, const char* table,
                                       const std::vector<std::string>& roles) {
  const Leaf* leaf = find(device);
  if (leaf == nullptr) {
    const std::string name = std::string(device).substr(0, std::string(device).rfind('.'));
    for (const std::string& role : roles) imply(role, "gpu", name);
    return;
  }
  const std::string tier = normalised_value(leaf->value);
  if (tier != "none" && tier != "cpu" && tier != "nvme")
    return refuse(*leaf, "it is none, cpu or nvme");
  const Leaf* ratio =
      find(std::string(device).substr(0, std::string(device).rfind('.')) + ".ratio");
  set(table, tier_table(tier, ratio == nullptr ? YAML::Node() : ratio->value), *leaf);
}

void DeepSpeedTranslation::place_activations() {
  const Leaf* leaf = find(cpu_checkpointing);
  if (leaf == nullptr)
    imply("offload.activations", "gpu", cpu_checkpointing);
  else
    set("offload.activations", YAML::Node(word(cpu_checkpointing, "") == "true" ? "cpu" : "gpu"),
        *leaf);
}

// Of those groups that are on nvme, once each.
void DeepSpeedTranslation::name_drives() {
  YAML::Node paths(YAML::NodeType::Sequence);
  const Leaf* last = nullptr;
  std::vector<std::string> seen;
  for (const std::string device : {optimizer_device, param_device}) {
    const Leaf* path = find(device.substr(0, device.rfind('.')) + ".nvme_path");
    if (path == nullptr || !path->value.IsScalar() || word(device, "none") != "nvme") continue;
    if (std::ranges::find(seen, path->value.Scalar()) != seen.end()) continue;
    seen.push_back(path->value.Scalar());
    paths.push_back(path->value);
    last = path;
  }
  if (last != nullptr) set("offload.nvme_paths", paths, *last);
}

void DeepSpeedTranslation::name_optimizer() {
  const Leaf* type = find("optimizer.type");
  name_betas();
  if (type == nullptr) return;
  const std::string name = normalised_value(type->value);
  const bool decays_coupled = word("optimizer.params.adam_w_mode", "true") == "false";
  if (name == "adamw" || (name == "adam" && !decays_coupled))
    set("optim", YAML::Node("adamw"), *type);
  else if (name == "adam" || name == "sgd" || name == "lion")
    set("optim", YAML::Node(name), *type);
  else
    refuse(*type, "optimizers are AdamW, Adam, SGD and Lion");
}

void DeepSpeedTranslation::name_betas() {
  const Leaf* betas = find("optimizer.params.betas");
  if (betas == nullptr) return;
  if (is_auto(betas->value)) return set("adam_beta1 and adam_beta2", betas->value, *betas);
  if (!betas->value.IsSequence() || betas->value.size() != 2)
    return refuse(*betas, "it is a list of two, such as [0.9, 0.999]");
  set("adam_beta1", betas->value[0], *betas);
  set("adam_beta2", betas->value[1], *betas);
}

void DeepSpeedTranslation::name_schedule() {
  const Leaf* type = find("scheduler.type");
  if (type == nullptr) return;
  const std::map<std::string, std::string> known{{"warmuplr", "constant_with_warmup"},
                                                 {"warmupdecaylr", "linear"},
                                                 {"warmupcosinelr", "cosine"}};
  const auto found = known.find(normalised_value(type->value));
  if (found == known.end())
    return refuse(*type, "schedulers are WarmupLR, WarmupDecayLR and WarmupCosineLR");
  set("lr_scheduler_type", YAML::Node(found->second), *type);
  if (find("scheduler.params.warmup_num_steps") == nullptr)
    imply("warmup_steps", "1000", "scheduler.params.warmup_num_steps");
  if (found->second == "cosine" && find("scheduler.params.cos_min_ratio") == nullptr)
    imply("lr_scheduler_kwargs.min_lr_ratio", "0.0001", "scheduler.params.cos_min_ratio");
  warn_of_warmup();
}

void DeepSpeedTranslation::warn_of_warmup() {
  const std::string warmup_type = word("scheduler.params.warmup_type", "log");
  if (warmup_type == "linear") return;
  config_.warnings.push_back(fmt::format(
      "{}: scheduler.params.warmup_type: {} is DeepSpeed's own curve; the warm-up here is linear",
      source_name_, warmup_type));
}

}  // namespace

bool is_deepspeed(const YAML::Node& root) {
  if (!root.IsMap()) return false;
  for (const char* name : {"train_micro_batch_size_per_gpu", "gradient_clipping"})
    if (root[name]) return true;
  for (const char* name : {"bf16", "fp16", "optimizer", "scheduler"})
    if (root[name] && root[name].IsMap()) return true;
  const YAML::Node zero = root["zero_optimization"];
  if (!zero || !zero.IsMap()) return false;
  return std::ranges::any_of(zero, [](const auto& entry) {
    return entry.first.IsScalar() && entry.first.Scalar() != "stage";
  });
}

bool is_deepspeed_entry(const std::string& name, const YAML::Node& value) {
  if (value.IsMap() && is_deepspeed_group(name)) return true;
  return find_deepspeed_rule(name) != nullptr;
}

DeepSpeedConfig translate_deepspeed(const YAML::Node& root, const std::string& source_name) {
  return DeepSpeedTranslation(source_name).translate(root);
}

}  // namespace strata
