#include "sim/resumed_run.hpp"

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "strata/topology/topology.hpp"
#include "strata/train/checkpoints.hpp"
#include "strata/train/durable_state.hpp"
#include "strata/train/ranks.hpp"

namespace strata::testing {
namespace {

namespace fs = std::filesystem;

RunTrail read_trail(const fs::path& metrics) {
  RunTrail trail;
  std::ifstream lines(metrics);
  for (std::string line; std::getline(lines, line);) {
    const auto object = nlohmann::json::parse(line);
    if (object.contains("checkpoint")) trail.saved.push_back(object["step"]);
    if (object.contains("event")) trail.events.push_back(object["text"]);
    if (!object.contains("loss")) continue;
    const std::int64_t step = object["step"];
    trail.steps[step] = {object["loss"], object["grad_norm"]};
    trail.learning_rates[step] = object["learning_rate"];
  }
  return trail;
}

}  // namespace

ResumeBench::ResumeBench(const SimOptions& disk) : disk_(make_sim_engine(disk)) {}

void ResumeBench::prepare(RunConfig& config, int world) {
  config.world = world;
  config.ranks = world;
  if (config.offload.nvme_paths.empty()) config.offload.nvme_paths = {"/nvme"};
  FileSystem& files = disk_->file_system();
  std::vector<std::string> directories = config.offload.nvme_paths;
  directories.push_back(config.output_dir.string());
  for (const std::string& directory : directories) {
    if (files.is_directory(directory)) continue;
    files.make_directory(directory);
    files.sync_directory(fs::path(directory).parent_path().string());
  }
}

RunTrail ResumeBench::train(RunConfig config, int world, const std::string& checkpoint,
                            const RunWatch& watch) {
  prepare(config, world);
  config.resume_from_checkpoint = checkpoint;
  const std::unique_ptr<CheckpointReader> resume =
      checkpoint.empty() ? nullptr : CheckpointReader::open(*disk_, checkpoint);
  SessionOptions shared;
  shared.resume = checkpoint;
  return run(config, shared, resume == nullptr ? nullptr : &resume->info().note, watch);
}

RunTrail ResumeBench::go_on(RunConfig config, int world) {
  prepare(config, world);
  const ResumePoint point = choose_resume_point(config, *disk_, alone(), true);
  SessionOptions shared;
  shared.point = &point;
  if (point.checkpoint != nullptr) shared.resume = point.checkpoint->info().path;
  RunTrail trail = run(config, shared, point.note());
  forget_removed_stores(disk_->file_system(), config.output_dir.string(), alone(), true);
  return trail;
}

RunTrail ResumeBench::run(const RunConfig& config, const SessionOptions& shared,
                          const RunNote* from, const RunWatch& watch) {
  TierLimits limits;
  limits.drive_bytes.assign(config.offload.nvme_paths.size(), std::uint64_t{1} << 40);
  std::vector<RankLinks> links = make_local_ranks(config.world);
  const fs::path exported = fresh_folder("export");
  std::vector<TrainOutcome> outcomes(static_cast<std::size_t>(world));
  run_ranks(links, [&](RankLinks& own) {
    const int rank = own.data->rank();
    SessionOptions options = shared;
    options.links = &own;
    options.executor = watch.executor;
    if (rank == 0) options.executor.before_op = watch.before_op_of_first;
    options.make_engine = [this](const OffloadConfig&) { return disk_; };
    Session session(config,
                    plan_run(config, Purpose::train, read_topology(),
                             {rank, config.world, rank, config.world}, limits),
                    options);
    TrainerOptions watched;
    watched.resume = from;
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> quiet(std::fopen("/dev/null", "w"),
                                                                std::fclose);
    std::unique_ptr<Progress> progress;
    if (rank == 0)
      progress = std::make_unique<Progress>(config.output_dir, Style::plain, quiet.get(),
                                            from == nullptr ? -1 : from->step);
    outcomes[static_cast<std::size_t>(rank)] =
        Trainer(config, session, progress.get(), watched).run(watch.stop, watch.save);
    session.export_to(exported / "model");
    session.end_durable();
  });
  RunTrail trail = read_trail(config.output_dir / "metrics.jsonl");
  trail.weights = read_bytes(exported / "model" / "model.safetensors");
  trail.outcomes = std::move(outcomes);
  return trail;
}

std::string difference_after(std::int64_t step, const RunTrail& expected, const RunTrail& got) {
  std::string text;
  const auto after = [step](const auto& values) {
    return std::map(values.upper_bound(step), values.end());
  };
  if (after(expected.steps) != after(got.steps)) text += " losses or norms";
  if (after(expected.learning_rates) != after(got.learning_rates)) text += " learning rates";
  if (expected.weights != got.weights) text += " weights";
  return text;
}

}  // namespace strata::testing
