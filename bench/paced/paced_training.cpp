#include "bench/paced/paced_training.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "bench/paced/paced_engine.hpp"
#include "bench/paced/paced_links.hpp"
#include "strata/core/clock.hpp"
#include "strata/topology/topology.hpp"
#include "strata/train/predicted_step.hpp"
#include "tests/sim/tiny_training.hpp"

namespace strata::bench {
namespace {

// Untied, large enough that its bytes take milliseconds per tile and its products little real time.
const strata::testing::TrainingFiles& training_files() {
  static const auto files = [] {
    HfConfig model;
    model.vocab_size = 257;
    model.hidden_size = 256;
    model.intermediate_size = 704;
    model.num_hidden_layers = 6;
    model.num_attention_heads = 4;
    model.num_key_value_heads = 2;
    model.head_dim = 64;
    model.max_position_embeddings = 2048;
    return strata::testing::make_training_files(model, 400, DType::bf16);
  }();
  return files;
}

std::vector<double> losses_in(const std::filesystem::path& metrics) {
  std::vector<double> losses;
  std::ifstream file(metrics);
  for (std::string text; std::getline(file, text);) {
    const auto line = nlohmann::json::parse(text);
    if (line.contains("grad_norm")) losses.push_back(line.at("loss").get<double>());
  }
  return losses;
}

void sleep_until(std::int64_t end_ns) {
  const std::int64_t left = end_ns - now_ns();
  if (left > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(left));
}

template <typename Value>
double median_of(std::span<const Roofline> ranks, const Value& value) {
  std::vector<double> values;
  for (const Roofline& rank : ranks) values.push_back(value(rank.measured));
  std::ranges::sort(values);
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

}  // namespace

double PacedResult::measured_seconds() const {
  return median_of(ranks, [](const StepUse& use) { return use.seconds; });
}
double PacedResult::measured_busy(Resource resource) const {
  const auto i = static_cast<std::size_t>(resource);
  return median_of(ranks, [i](const StepUse& use) { return use.busy[i]; });
}
double PacedResult::measured_wait(Resource resource) const {
  const auto i = static_cast<std::size_t>(resource);
  return median_of(ranks, [i](const StepUse& use) { return use.waits[i]; });
}

PacedTraining::PacedTraining(const PacedRates& rates, std::int64_t steps, std::int64_t tokens)
    : rates_(rates), base_(strata::testing::tiny_config(training_files())) {
  base_.max_steps = steps;
  base_.evaluate = false;
  base_.cutoff_len = tokens;
  base_.gradient_accumulation_steps = 1;
  base_.offload.tile_bytes = 512 << 10;
}

// What the ranks of a run have in common.
struct PacedTraining::Job {
  RunConfig config;
  Topology topology;
  TierLimits limits;
  MachineProfile machine;
  EngineFactory make_engine;
};

PacedResult PacedTraining::run(RunConfig config) const {
  config.ranks = config.world;
  config.output_dir = strata::testing::fresh_folder("paced");
  config.offload.nvme_paths = {config.output_dir.string()};
  const Topology topology = read_topology();
  const Job job{config, topology, rank_limits(config, Purpose::train, topology, config.world),
                profile_of(rates_, config.world), shared_engine(paced_drive())};
  std::vector<RankLinks> links = make_paced_ranks(config.world, {rates_.gather, rates_.reduce});
  PacedResult result;
  result.ranks.resize(links.size());
  run_ranks(links, [&](RankLinks& rank) {
    result.ranks[static_cast<std::size_t>(rank.data->rank())] = train_rank(job, rank);
  });
  result.losses = losses_in(config.output_dir / "metrics.jsonl");
  std::filesystem::remove_all(config.output_dir);
  return result;
}

Roofline PacedTraining::train_rank(const Job& job, RankLinks& links) const {
  const int rank = links.data->rank(), world = links.data->world();
  PlannedRun planned =
      plan_run(job.config, Purpose::train, job.topology, {rank, world, rank, world}, job.limits);
  const Program program = planned.program;
  TrainerOptions watched;
  watched.predicted = predict_step(planned, job.machine);
  const auto make_device = [this](const Plan& plan) {
    return make_host_device({plan.limits.device_bytes, rates_.up, rates_.down});
  };
  Session session(job.config, std::move(planned),
                  {paced_ops(program), job.make_engine, make_device, &links});
  std::optional<Progress> progress;
  if (rank == 0) progress.emplace(job.config.output_dir, Style::plain, nullptr);
  return Trainer(job.config, session, rank == 0 ? &*progress : nullptr, watched).run().roofline;
}

// Of a program that outlives what is made with them.
ExecutorOptions PacedTraining::paced_ops(const Program& program) const {
  ExecutorOptions options;
  options.after_op = [this, &program](const Op& op, std::int64_t start_ns) {
    sleep_until(start_ns + static_cast<std::int64_t>(1e9 * stated_seconds(program, op, rates_)));
  };
  return options;
}

EngineFactory PacedTraining::paced_drive() const {
  return [this](const OffloadConfig& offload) -> std::shared_ptr<IoEngine> {
    return std::make_shared<PacedEngine>(make_offload_engine(offload),
                                         DriveRates{rates_.read, rates_.write});
  };
}

bool KnownLosses::same(const RunConfig& config, const std::vector<double>& losses) {
  const Shape shape{config.world, config.gradient_accumulation_steps, config.max_grad_norm};
  return known_.emplace(shape, losses).first->second == losses;
}

}  // namespace strata::bench
