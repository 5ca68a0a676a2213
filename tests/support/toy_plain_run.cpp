// A toy Program on plain vectors.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "strata/core/bytes.hpp"
#include "strata/kernels/kernels.hpp"
#include "support/toy_data.hpp"
#include "support/toy_model.hpp"
#include "support/toy_run.hpp"

namespace strata::testing {
namespace {

class PlainRun {
 public:
  PlainRun(const Program& program, const ToyRunOptions& options, int ranks)
      : program_(program), options_(options), ranks_(static_cast<std::size_t>(ranks)) {
    for (const Shard& shard : program.shards) {
      data_.emplace_back(static_cast<std::size_t>(shard.bytes()));
      if (is_toy_state(shard.role))
        for (std::int64_t i = 0; i < shard.count; ++i)
          reinterpret_cast<float*>(data_.back().data())[i] = initial_value(program, shard, i);
    }
  }

  Trajectory run() {
    Trajectory t;
    for (int step = 0; step < options_.steps; ++step) {
      ToyStep input;
      input.fill(program_, step, options_);
      train(input.args(), t);
      if (options_.evaluate_every == 0 || step % options_.evaluate_every != 0) continue;
      const double score = evaluate(input.args());
      t.scores.insert(t.scores.end(), static_cast<std::size_t>(options_.evaluations), score);
    }
    for (const Shard& shard : program_.shards)
      if (shard.role == Role::weight) t.weights.push_back(data_[shard.id.index()]);
    return t;
  }

 private:
  void train(const StepArgs& args, Trajectory& t) {
    for (std::size_t i = 0; i < args.inputs.size(); ++i) feed(static_cast<int>(i), args.inputs[i]);
    const std::vector<double> losses = sequence("train", args);
    t.losses.push_back(0);
    for (std::size_t rank = 0; rank < ranks_; ++rank)
      for (std::size_t i = rank; i < losses.size(); i += ranks_) {
        t.micro_batch_losses.push_back(losses[i]);
        t.losses.back() += losses[i];
      }
    t.norms.push_back(scalars_.grad_norm);
  }

  // Each rank's first micro-batch.
  double evaluate(const StepArgs& args) {
    double score = 0;
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      feed(0, args.inputs[rank]);
      score += sequence("eval", args).front();
    }
    return score;
  }

  void feed(int micro_batch, std::span<const std::byte> input) {
    const ShardId shard = program_.find(Role::input, -1, micro_batch);
    std::ranges::copy(input, data_[shard.index()].begin());
  }

  // Returns the loss of each micro-batch.
  std::vector<double> sequence(std::string_view name, const StepArgs& args) {
    seen_.clear();
    std::vector<double> losses;
    for (SegmentId id : program_.sequence(name)->segments) {
      const Segment& s = program_.segment(id);
      if (s.kind == SegmentKind::norm)
        norm(args.hyper);
      else if (s.kind == SegmentKind::update)
        update(s, args.hyper);
      else
        model(s, args, losses);
    }
    return losses;
  }

  void model(const Segment& s, const StepArgs& args, std::vector<double>& losses) {
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
    if (metric != nullptr) losses.push_back(*metric);
  }

  TensorView view(ShardId id) {
    return {data_[id.index()].data(), program_.shard(id).dtype, {program_.shard(id).count}};
  }

  // Each rank's chunks of all gradients, then the ranks' sums.
  void norm(const UpdateHyper& hyper) {
    std::vector<double> sums(ranks_);
    for (const Shard& shard : program_.shards)
      if (shard.role == Role::gradient) add_squares(shard, sums);
    double sum = 0;
    for (const double of_rank : sums) sum += of_rank;
    scalars_ = {};
    scalars_.grad_norm = std::sqrt(sum);
    if (hyper.max_grad_norm > 0)
      scalars_.clip_factor = static_cast<float>(
          std::min(1.0, static_cast<double>(hyper.max_grad_norm) / (scalars_.grad_norm + 1e-6)));
  }

  void add_squares(const Shard& gradient, std::vector<double>& sums) {
    std::vector<double> chunks(
        static_cast<std::size_t>(ceil_div(gradient.count, norm_chunk_elements)));
    kernels_->square_sums(view(gradient.id), {chunks.data(), DType::f64, {std::ssize(chunks)}},
                          *stream_);
    const std::size_t chunks_per_rank = ceil_div(chunks.size(), ranks_);
    for (std::size_t i = 0; i < chunks.size(); ++i) sums[i / chunks_per_rank] += chunks[i];
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
  const std::size_t ranks_;
  std::vector<std::vector<std::byte>> data_;
  std::map<ShardId, int> seen_;
  UpdateScalars scalars_;
  ToyModel model_;
  ToyOptimizer optimizer_;
  const std::unique_ptr<Kernels> kernels_ = make_ref_kernels();
  const std::unique_ptr<Device> device_ = make_host_device({});
  const std::unique_ptr<Stream> stream_ = device_->make_stream("toy");
};

}  // namespace

Trajectory run_plainly(const Program& program, const ToyRunOptions& options, int ranks) {
  return PlainRun(program, options, ranks).run();
}

}  // namespace strata::testing
