#include "strata/optim/optimizer.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "strata/core/block_q8.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

constexpr UpdateRule rules[] = {UpdateRule::adamw, UpdateRule::adam, UpdateRule::sgd,
                                UpdateRule::lion};

double bytes_per_element(DType dtype) {
  return static_cast<double>(storage_bytes(dtype, q8_block_elements)) /
         static_cast<double>(q8_block_elements);
}

const std::string& block_name(const Program& program, int block) {
  return program.blocks[static_cast<std::size_t>(block)];
}

ShardId add_state(Program& program, const Shard& gradient, const StateShard& state) {
  Shard shard;
  shard.role = state.role;
  shard.block = gradient.block;
  shard.dtype = state.dtype;
  shard.count = program.model_elements(gradient.id);
  shard.name = fmt::format("{}/{}", role_name(state.role), block_name(program, gradient.block));
  return program.add(program.shared(std::move(shard)));
}

void declare_norm(const std::vector<Shard>& gradients, Program& program, Sequence& sequence) {
  Segment norm;
  norm.kind = SegmentKind::norm;
  norm.name = "norm";
  for (const Shard& gradient : gradients) norm.uses.push_back({gradient.id, Access::read, -1});
  sequence.segments.push_back(program.add(std::move(norm)));
}

// `uses` of whole shards, narrowed to what lies where one tile of the master does.
void declare_update(const Shard& gradient, ShardId master, int tile, std::vector<Use> uses,
                    Program& program, Sequence& sequence) {
  const int place = program.place(master, tile);
  for (Use& use : uses) use.tile = program.tile_at(use.shard, place);
  Segment update;
  update.kind = SegmentKind::update;
  update.block = gradient.block;
  update.tile = tile;
  update.name = fmt::format("update {} tile {}", block_name(program, gradient.block), tile);
  update.uses = std::move(uses);
  sequence.segments.push_back(program.add(std::move(update)));
}

void declare_updates(const OptimizerConfig& config, const Shard& gradient, Program& program,
                     Sequence& sequence) {
  std::vector<Use> uses = {{gradient.id, Access::read}};
  for (const StateShard& state : state_shards(config))
    uses.push_back({add_state(program, gradient, state), Access::update});
  const bool split = config.master == MasterFormat::split;
  uses.push_back(
      {program.find(Role::weight, gradient.block), split ? Access::update : Access::produce});
  const ShardId master = program.find(Role::master, gradient.block);
  for (int tile = 0; tile < program.num_tiles(master); ++tile)
    declare_update(gradient, master, tile, uses, program, sequence);
}

}  // namespace

std::string_view update_rule_name(UpdateRule rule) {
  constexpr std::string_view names[] = {"adamw", "adam", "sgd", "lion"};
  return names[static_cast<std::size_t>(rule)];
}

UpdateRule parse_update_rule(std::string_view name) {
  std::string known;
  for (const UpdateRule rule : rules) {
    if (name == update_rule_name(rule)) return rule;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", update_rule_name(rule));
  }
  throw ConfigError(fmt::format("no optimizer is named '{}'; known are {}", name, known));
}

bool is_exact(const OptimizerConfig& config) { return config.moments == DType::f32; }

std::string describe(const OptimizerConfig& config) {
  return fmt::format("{}, master {} (exact), moments {} ({}), {:.4g} bytes of state per parameter",
                     update_rule_name(config.rule),
                     config.master == MasterFormat::split ? "split" : "fp32",
                     config.moments == DType::f32 ? "fp32" : dtype_name(config.moments),
                     is_exact(config) ? "exact" : "approximate", state_bytes_per_parameter(config));
}

std::vector<StateShard> state_shards(const OptimizerConfig& config) {
  const DType master = config.master == MasterFormat::split ? DType::u16 : DType::f32;
  std::vector<StateShard> shards = {{Role::master, master}, {Role::moment1, config.moments}};
  if (has_moment2(config.rule)) shards.push_back({Role::moment2, config.moments});
  return shards;
}

double state_bytes_per_parameter(const OptimizerConfig& config) {
  double bytes = 0;
  for (const StateShard& shard : state_shards(config)) bytes += bytes_per_element(shard.dtype);
  return bytes;
}

double pass_bytes_per_parameter(const OptimizerConfig& config, DType gradient, DType weight) {
  const double touches = config.master == MasterFormat::split ? 2 : 1;  // of the weight
  return bytes_per_element(gradient) + 2 * state_bytes_per_parameter(config) +
         touches * bytes_per_element(weight);
}

Optimizer::Optimizer(const OptimizerConfig& config, std::vector<std::vector<DecayRange>> decays,
                     Kernels& kernels)
    : config_(config), decays_(std::move(decays)), kernels_(kernels) {}

void Optimizer::declare(const OptimizerConfig& config, Program& program, Sequence& sequence) {
  std::vector<Shard> gradients;
  for (const Shard& shard : program.shards)
    if (shard.role == Role::gradient) gradients.push_back(shard);
  std::ranges::sort(gradients, {}, &Shard::block);  // updates in the order of next use
  declare_norm(gradients, program, sequence);
  for (const Shard& gradient : gradients) declare_updates(config, gradient, program, sequence);
}

void Optimizer::update(const TileUpdate& tile, const UpdateHyper& hyper,
                       const UpdateScalars& scalars, Stream& stream) {
  const bool split = config_.master == MasterFormat::split;
  if (scalars.apply == 0) {
    if (!split) kernels_.cast_weight(tile.master, tile.weight, stream);
    return;
  }
  UpdateArgs args;
  args.rule = config_.rule;
  args.gradient = tile.gradient;
  args.master = tile.master;
  args.moment1 = tile.moment1;
  args.moment2 = tile.moment2;
  args.weight = tile.weight;
  args.first = tile.begin;
  args.decays = decays_[static_cast<std::size_t>(tile.block)];
  args.learning_rate = static_cast<double>(hyper.learning_rate);
  args.beta1 = config_.beta1;
  args.beta2 = config_.beta2;
  args.epsilon = config_.epsilon;
  args.weight_decay = config_.weight_decay;
  args.gradient_scale = scalars.clip_factor;
  args.step = hyper.step;
  args.seed = config_.seed;
  args.shard = static_cast<std::uint64_t>(tile.block);
  kernels_.update(args, stream);
}

}  // namespace strata
