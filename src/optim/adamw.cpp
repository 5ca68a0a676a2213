#include "strata/optim/adamw.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "strata/core/error.hpp"

namespace strata {
namespace {

ShardId add_state(Program& program, const Shard& gradient, Role role) {
  Shard shard;
  shard.role = role;
  shard.block = gradient.block;
  shard.dtype = DType::f32;
  shard.count = gradient.count;
  shard.name = fmt::format("{}/{}", role_name(role),
                           program.blocks[static_cast<std::size_t>(gradient.block)]);
  return program.add(std::move(shard));
}

// Elements [first, last) of a tile with one decay.
struct Run {
  std::int64_t first, last;
  bool decays;
};

TensorView part(const TensorView& view, const Run& run) {
  return view.slice(run.first, {run.last - run.first});
}

}  // namespace

AdamW::AdamW(const AdamWConfig& config, std::vector<std::vector<DecayRange>> decays,
             Kernels& kernels)
    : config_(config), decays_(std::move(decays)), kernels_(kernels) {}

void AdamW::declare(Program& program, Sequence& sequence) {
  std::vector<Shard> gradients;
  for (const Shard& shard : program.shards)
    if (shard.role == Role::gradient) gradients.push_back(shard);
  std::ranges::sort(gradients, {}, &Shard::block);  // updates in the order of next use
  Segment norm;
  norm.kind = SegmentKind::norm;
  norm.name = "norm";
  for (const Shard& gradient : gradients) norm.uses.push_back({gradient.id, Access::read, -1});
  sequence.segments.push_back(program.add(std::move(norm)));
  for (const Shard& gradient : gradients) {
    const ShardId master = add_state(program, gradient, Role::master);
    const ShardId moment1 = add_state(program, gradient, Role::moment1);
    const ShardId moment2 = add_state(program, gradient, Role::moment2);
    const ShardId weight = program.find(Role::weight, gradient.block);
    for (int tile = 0; tile < program.num_tiles(gradient.id); ++tile) {
      Segment update;
      update.kind = SegmentKind::update;
      update.block = gradient.block;
      update.tile = tile;
      update.name = fmt::format("update {} tile {}",
                                program.blocks[static_cast<std::size_t>(gradient.block)], tile);
      update.uses = {{gradient.id, Access::read, tile},
                     {master, Access::update, tile},
                     {moment1, Access::update, tile},
                     {moment2, Access::update, tile},
                     {weight, Access::produce, tile}};
      sequence.segments.push_back(program.add(std::move(update)));
    }
  }
}

void AdamW::update(const TileUpdate& tile, const UpdateHyper& hyper, const UpdateScalars& scalars,
                   Stream& stream) {
  if (scalars.apply == 0) return kernels_.cast_weight(tile.master, tile.weight, stream);
  AdamWArgs args;
  args.learning_rate = hyper.learning_rate;
  args.beta1 = config_.beta1;
  args.beta2 = config_.beta2;
  args.epsilon = config_.epsilon;
  const auto step = static_cast<double>(hyper.step);
  args.bias_correction1 = static_cast<float>(1 - std::pow(config_.beta1, step));
  args.bias_correction2_sqrt = static_cast<float>(std::sqrt(1 - std::pow(config_.beta2, step)));
  args.gradient_scale = scalars.clip_factor;

  const std::int64_t count = tile.master.count();
  const auto apply = [&](const Run& run) {
    if (run.first == run.last) return;
    args.gradient = part(tile.gradient, run);
    args.master = part(tile.master, run);
    args.moment1 = part(tile.moment1, run);
    args.moment2 = part(tile.moment2, run);
    args.weight = part(tile.weight, run);
    args.weight_decay = run.decays ? config_.weight_decay : 0;
    kernels_.adamw(args, stream);
  };
  std::int64_t at = 0;  // within the tile
  for (const DecayRange& range : decays_[static_cast<std::size_t>(tile.block)]) {
    const std::int64_t begin = std::clamp<std::int64_t>(range.begin - tile.begin, at, count);
    const std::int64_t end = std::clamp<std::int64_t>(range.end - tile.begin, begin, count);
    apply({at, begin, false});
    apply({begin, end, true});
    at = end;
  }
  apply({at, count, false});
}

}  // namespace strata
