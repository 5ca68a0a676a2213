#include "support/toy_run.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>

#include "strata/core/bytes.hpp"
#include "strata/core/philox.hpp"
#include "strata/kernels/kernels.hpp"
#include "strata/runtime/nvme_tiles.hpp"
#include "strata/runtime/state_access.hpp"
#include "support/drives.hpp"
#include "support/toy_model.hpp"

namespace strata::testing {
namespace {

float initial_value(const Shard& shard, std::int64_t element) {
  if (shard.role == Role::moment1 || shard.role == Role::moment2) return 0;
  const auto word = philox4x32(
      {static_cast<std::uint32_t>(element), static_cast<std::uint32_t>(shard.block), 0, 0},
      {1, 2})[0];
  return static_cast<float>(word) * 0x1.0p-32f - 0.5f;
}

bool is_state(Role role) {
  return role == Role::weight || role == Role::master || role == Role::moment1 ||
         role == Role::moment2;
}

// Inputs and arguments of one step.
struct StepInput {
  std::vector<std::vector<std::int32_t>> data;
  StepArgs args;

  void fill(const Program& program, std::int64_t step, const ToyRunOptions& options) {
    data.clear();
    args.inputs.clear();
    for (const Shard& shard : program.shards) {
      if (shard.role != Role::input) continue;
      data.emplace_back(static_cast<std::size_t>(shard.count));
      for (std::size_t i = 0; i < data.back().size(); ++i)
        data.back()[i] = static_cast<std::int32_t>(
            philox4x32({static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(step),
                        static_cast<std::uint32_t>(shard.micro_batch), 0},
                       {3, 4})[0] %
            1000);
    }
    for (const auto& d : data) args.inputs.push_back(std::as_bytes(std::span(d)));
    args.index = step;
    args.loss_scale = 1.0 / 128;
    args.hyper = {step + 1, 0.05f, options.max_grad_norm};
  }
};

// The Program on plain vectors.
class PlainRun {
 public:
  PlainRun(const Program& program, const ToyRunOptions& options)
      : program_(program), options_(options) {
    for (const Shard& shard : program.shards) {
      data_.emplace_back(static_cast<std::size_t>(shard.bytes()));
      if (is_state(shard.role))
        for (std::int64_t i = 0; i < shard.count; ++i)
          reinterpret_cast<float*>(data_.back().data())[i] = initial_value(shard, i);
    }
  }

  Trajectory run() {
    Trajectory t;
    for (int step = 0; step < options_.steps; ++step) {
      StepInput input;
      input.fill(program_, step, options_);
      t.losses.push_back(sequence("train", input));
      t.norms.push_back(scalars_.grad_norm);
      if (options_.evaluate_every == 0 || step % options_.evaluate_every != 0) continue;
      for (int i = 0; i < options_.evaluations; ++i) t.scores.push_back(sequence("eval", input));
    }
    for (const Shard& shard : program_.shards)
      if (shard.role == Role::weight) t.weights.push_back(data_[shard.id.index()]);
    return t;
  }

 private:
  double sequence(std::string_view name, const StepInput& input) {
    seen_.clear();
    double loss = 0;
    for (const Shard& shard : program_.shards)
      if (shard.role == Role::input)
        std::memcpy(data_[shard.id.index()].data(),
                    input.args.inputs[static_cast<std::size_t>(shard.micro_batch)].data(),
                    data_[shard.id.index()].size());
    for (SegmentId id : program_.sequence(name)->segments) {
      const Segment& s = program_.segment(id);
      if (s.kind == SegmentKind::norm)
        norm(input.args.hyper);
      else if (s.kind == SegmentKind::update)
        update(s, input.args.hyper);
      else
        loss += model(s, input.args);
    }
    return loss;
  }

  double model(const Segment& s, const StepArgs& args) {
    std::vector<TensorView> views;
    std::vector<std::vector<std::byte>> contributions(s.uses.size());
    std::vector<std::byte> scratch(s.scratch_bytes);
    double* metric = nullptr;
    for (std::size_t i = 0; i < s.uses.size(); ++i) {
      const Shard& shard = program_.shard(s.uses[i].shard);
      auto* bytes = &data_[shard.id.index()];
      if (s.uses[i].access == Access::accumulate) {
        contributions[i].resize(bytes->size());
        bytes = &contributions[i];
      }
      views.push_back({bytes->data(), shard.dtype, {shard.count}});
      if (shard.role == Role::metric) metric = reinterpret_cast<double*>(bytes->data());
    }
    model_.run(s, {views, scratch}, args, *stream_);
    for (std::size_t i = 0; i < s.uses.size(); ++i)
      if (s.uses[i].access == Access::accumulate)
        kernels_->accumulate(views[i], view(s.uses[i].shard),
                             seen_[s.uses[i].shard]++ == 0 ? Accumulate::no : Accumulate::yes,
                             *stream_);
    return metric == nullptr ? 0 : *metric;
  }

  TensorView view(ShardId id) {
    return {data_[id.index()].data(), program_.shard(id).dtype, {program_.shard(id).count}};
  }

  void norm(const UpdateHyper& hyper) {
    double sum = 0;
    for (const Shard& shard : program_.shards) {
      if (shard.role != Role::gradient) continue;
      std::vector<double> partials(
          static_cast<std::size_t>(ceil_div(shard.count, norm_chunk_elements)));
      kernels_->square_sums(
          view(shard.id),
          {partials.data(), DType::f64, {static_cast<std::int64_t>(partials.size())}}, *stream_);
      for (double p : partials) sum += p;
    }
    scalars_ = {};
    scalars_.grad_norm = std::sqrt(sum);
    if (hyper.max_grad_norm > 0)
      scalars_.clip_factor = static_cast<float>(
          std::min(1.0, static_cast<double>(hyper.max_grad_norm) / (scalars_.grad_norm + 1e-6)));
  }

  void update(const Segment& s, const UpdateHyper& hyper) {
    TileUpdate tile;
    tile.segment = &s;
    tile.block = s.block;
    for (const Use& use : s.uses)
      tile.operand(program_.shard(use.shard).role) = view(use.shard).slice(
          program_.tile_begin(use.shard, s.tile), {program_.tile_count(use.shard, s.tile)});
    optimizer_.update(tile, hyper, scalars_, *stream_);
  }

  const Program& program_;
  const ToyRunOptions& options_;
  std::vector<std::vector<std::byte>> data_;
  std::map<ShardId, int> seen_;
  UpdateScalars scalars_;
  ToyModel model_;
  ToyOptimizer optimizer_;
  std::unique_ptr<Kernels> kernels_ = make_ref_kernels();
  std::unique_ptr<Stream> stream_ = make_host_device({})->make_stream("toy");
};

void initialise(const Program& program, StateAccess& state) {
  for (const Shard& shard : program.shards) {
    if (!is_state(shard.role)) continue;
    for (int tile = 0; tile < program.num_tiles(shard.id); ++tile)
      state.write(shard.id, tile, [&](std::span<std::byte> bytes) {
        auto* values = reinterpret_cast<float*>(bytes.data());
        for (std::int64_t i = 0; i < program.tile_count(shard.id, tile); ++i)
          values[i] = initial_value(shard, program.tile_begin(shard.id, tile) + i);
      });
  }
}

std::unique_ptr<ShardStore> make_store(const Program& program, const Plan& plan, IoEngine& engine,
                                       const Drives& drives) {
  StoreSpec spec;
  spec.directories = drives.paths();
  spec.tiles = NvmeTiles(program, plan).tiles();
  return ShardStore::create(engine, spec, {Checksums::on, Verify::reads});
}

}  // namespace

Trajectory run_planned(const Program& program, const Plan& plan, IoEngine* engine,
                       const ToyRunOptions& options) {
  auto device = make_host_device({});
  TierMemory memory(*device, plan.tier_bytes[0], plan.tier_bytes[1]);
  std::optional<Drives> drives;
  std::unique_ptr<ShardStore> store;
  if (plan.tier_bytes[2] > 0) {
    drives.emplace(*engine, plan.drive_bytes.size());
    store = make_store(program, plan, *engine, *drives);
  }
  auto kernels = make_ref_kernels();
  ToyModel model;
  ToyOptimizer optimizer;
  StateAccess state(program, plan, *device, memory, store.get());
  initialise(program, state);
  std::array<StepInput, 3> inputs;
  StepInput eval_input;
  Executor executor(
      program, plan,
      {device.get(), &memory, store.get(), kernels.get(), kernels.get(), &model, &optimizer},
      options.executor);
  Trajectory t;
  for (int step = 0; step < options.steps; ++step) {
    StepInput& input = inputs[static_cast<std::size_t>(step % 3)];
    input.fill(program, step, options);
    executor.submit("train", input.args);
    const StepResult result = executor.wait_result();
    t.losses.push_back(result.loss);
    t.norms.push_back(result.grad_norm);
    if (options.evaluate_every == 0 || step % options.evaluate_every != 0) continue;
    eval_input.fill(program, step, options);
    for (int i = 0; i < options.evaluations; ++i) {
      executor.submit("eval", eval_input.args);
      t.scores.push_back(executor.wait_result().loss);
    }
    executor.drain();
  }
  executor.drain();
  for (const Shard& shard : program.shards) {
    if (shard.role != Role::weight) continue;
    t.weights.emplace_back();
    for (int tile = 0; tile < program.num_tiles(shard.id); ++tile) {
      const auto bytes = state.read(shard.id, tile);
      t.weights.back().insert(t.weights.back().end(), bytes.begin(), bytes.end());
    }
  }
  return t;
}

Trajectory run_plainly(const Program& program, const ToyRunOptions& options) {
  return PlainRun(program, options).run();
}

}  // namespace strata::testing
