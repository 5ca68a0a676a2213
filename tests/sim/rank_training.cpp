#include "sim/rank_training.hpp"

#include <cstring>
#include <memory>
#include <utility>

#include "strata/core/error.hpp"
#include "strata/topology/topology.hpp"
#include "strata/train/gpu_exchange.hpp"
#include "strata/train/ranks.hpp"

namespace strata::testing {
namespace {

namespace fs = std::filesystem;

PlannedRun plan_with(const RunConfig& config, int rank, const TierLimits& limits,
                     RankDevice device = {}) {
  const RankPlace place{rank, config.world, rank, config.world};
  return plan_run(config, Purpose::train, read_topology(), place, limits, std::move(device));
}

TierLimits limits_of(const RunConfig& config) {
  return rank_limits(config, Purpose::train, read_topology(), config.world);
}

// A run of all ranks, from plans to exported weights.
class RanksRun {
 public:
  RanksRun(const RunConfig& config, const RanksOptions& options)
      : config_(config),
        options_(options),
        make_engine_(shared_engine(options.make_engine)),
        quiet_(std::fopen("/dev/null", "w"), std::fclose) {
    config_.output_dir = fresh_folder("ranks");
    if (config_.offload.nvme_paths.empty())
      config_.offload.nvme_paths = {config_.output_dir.string()};
    limits_ = limits_of(config_);
    result_.ranks.resize(static_cast<std::size_t>(config_.world));
  }
  ~RanksRun() {
    std::error_code ignored;
    fs::remove_all(config_.output_dir, ignored);
  }

  RanksOutcome train() {
    std::vector<RankLinks> links = make_local_ranks(config_.world);
    GpuExchange exchange(links, options_.make_nccl ? options_.make_nccl() : nullptr,
                         config_.ddp_timeout);
    run_ranks(links, [&](RankLinks& rank) { train_rank(rank, exchange); });
    Outcome& outcome = result_.outcome;
    outcome = logged_outcome(config_.output_dir);
    outcome.weights = read_bytes(exported() / "model.safetensors");
    return std::move(result_);
  }

 private:
  fs::path exported() const { return config_.output_dir / "export"; }

  RankSetup setup(int rank) const {
    RankSetup setup;
    setup.rank = rank;
    setup.config = config_;
    setup.executor = options_.executor;
    if (options_.change) options_.change(setup);
    return setup;
  }
  std::unique_ptr<Progress> progress(int rank) const {
    if (rank > 0) return nullptr;
    return std::make_unique<Progress>(config_.output_dir, Style::plain, quiet_.get());
  }

  void train_rank(RankLinks& links, GpuExchange& exchange) {
    const int rank = links.control->rank();
    const RankSetup setup = this->setup(rank);
    PlannedRun planned = plan_with(
        config_, rank, limits_, options_.open_device ? options_.open_device(rank) : RankDevice{});
    exchange.join(links, planned);
    Session session(setup.config, std::move(planned),
                    {setup.executor, make_engine_, setup.make_device, &links});
    const auto progress = this->progress(rank);
    Trainer trainer(setup.config, session, progress.get());
    RankFacts& facts = result_.ranks[static_cast<std::size_t>(rank)];
    facts.training = trainer.run(setup.stop);
    facts.exchanged_bytes = links.data->bytes_exchanged();
    facts.plan = session.run().plan;
    if (setup.trained) setup.trained(session);
    facts.peaks = session.peaks();
    session.export_to(exported());
  }

  RunConfig config_;
  const RanksOptions options_;
  const EngineFactory make_engine_;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> quiet_;
  TierLimits limits_;  // the same for all ranks
  RanksOutcome result_;
};

}  // namespace

RunConfig of_ranks(RunConfig config, int world, int stage) {
  config.ranks = config.world = world;
  config.zero_stage = stage;
  return config;
}

PlannedRun plan_of_rank(const RunConfig& config, int rank) {
  return plan_with(config, rank, limits_of(config));
}

RanksOutcome train_on_ranks(const RunConfig& config, const RanksOptions& options) {
  return RanksRun(config, options).train();
}

void place_ranks_randomly(RunConfig& config, std::uint64_t seed) {
  place_randomly(config, seed);
  config.compute_threads = 1;
  config.update_threads = 1 + static_cast<int>(seed % 2);
}

void place_state(RunConfig& config, const TierFractions& fractions) {
  OffloadConfig& o = config.offload;
  for (TierFractions* role :
       {&o.weights, &o.gradients, &o.master, &o.moment1, &o.moment2, &o.activations, &o.saved})
    *role = fractions;
}

EngineFactory unruly_sim_engine(std::uint64_t seed) {
  return [seed](const OffloadConfig& offload) {
    SimOptions options;
    options.seed = seed;
    options.latency_us_max = 50;
    options.short_transfer_probability = 0.05;
    options.again_probability = 0.05;
    return make_sim_engine_for(offload, options);
  };
}

std::vector<float> exported_f32(const std::string& weights) {
  std::uint64_t header_bytes = 0;
  ensure(weights.size() > sizeof header_bytes);
  std::memcpy(&header_bytes, weights.data(), sizeof header_bytes);
  const std::size_t begin = sizeof header_bytes + header_bytes;
  ensure(weights.size() > begin && (weights.size() - begin) % sizeof(float) == 0);
  std::vector<float> values((weights.size() - begin) / sizeof(float));
  std::memcpy(values.data(), weights.data() + begin, values.size() * sizeof(float));
  return values;
}

}  // namespace strata::testing
