#include "sim/resumed_run.hpp"

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "strata/topology/topology.hpp"
#include "strata/train/checkpoints.hpp"
#include "strata/train/ranks.hpp"

namespace strata::testing {
namespace {

namespace fs = std::filesystem;

RunTrail read_trail(const fs::path& metrics) {
  RunTrail trail;
  std::ifstream lines(metrics);
  for (std::string line; std::getline(lines, line);) {
    const auto object = nlohmann::json::parse(line);
    if (object.value("event", "") == "save") trail.said_of_saves.push_back(object["text"]);
    if (!object.contains("loss")) continue;
    const std::int64_t step = object["step"];
    trail.steps[step] = {object["loss"], object["grad_norm"]};
    trail.learning_rates[step] = object["learning_rate"];
  }
  return trail;
}

void make_directory(FileSystem& files, const std::string& path) {
  if (!files.is_directory(path)) files.make_directory(path);
}

}  // namespace

ResumeBench::ResumeBench(const SimOptions& disk) : disk_(make_sim_engine(disk)), engine_(disk_) {}

RunTrail ResumeBench::train(RunConfig config, int world, const std::string& checkpoint,
                            const ChangeRank& change) {
  config.world = world;
  config.ranks = world;
  if (config.offload.nvme_paths.empty()) config.offload.nvme_paths = {"/nvme"};
  for (const std::string& path : config.offload.nvme_paths)
    make_directory(engine_->file_system(), path);
  make_directory(engine_->file_system(), config.output_dir.string());
  config.resume_from_checkpoint = checkpoint;
  const std::unique_ptr<CheckpointReader> resume =
      checkpoint.empty() ? nullptr : CheckpointReader::open(*engine_, checkpoint);

  TierLimits limits;
  limits.drive_bytes.assign(config.offload.nvme_paths.size(), std::uint64_t{1} << 40);
  std::vector<RankLinks> links = make_local_ranks(world);
  const fs::path exported = fresh_folder("export");
  TrainOutcome outcome;
  run_ranks(links, [&](RankLinks& own) {
    const int rank = own.data->rank();
    ResumedRank given;
    given.rank = rank;
    if (change) change(given);
    SessionOptions options;
    options.executor = given.executor;
    options.links = &own;
    options.resume = checkpoint;
    options.make_engine = [this](const OffloadConfig&) { return engine_; };
    Session session(
        config,
        plan_run(config, Purpose::train, read_topology(), {rank, world, rank, world}, limits),
        options);
    TrainerOptions watched;
    if (resume != nullptr) watched.resume = &resume->info().note;
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> quiet(std::fopen("/dev/null", "w"),
                                                                std::fclose);
    std::unique_ptr<Progress> progress;
    if (rank == 0)
      progress = std::make_unique<Progress>(config.output_dir, Style::plain, quiet.get());
    const TrainOutcome ended = Trainer(config, session, progress.get(), watched).run(given.stop);
    if (rank == 0) outcome = ended;
    session.export_to(exported / "model");
  });
  RunTrail trail = read_trail(config.output_dir / "metrics.jsonl");
  trail.weights = read_bytes(exported / "model" / "model.safetensors");
  trail.outcome = outcome;
  fs::remove_all(exported);
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
