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
    if (object.value("event", "") == "save") trail.said_of_saves.push_back(object["text"]);
    if (object.contains("eval_loss")) trail.held_out[object["step"]] = object["eval_loss"];
    if (!object.contains("loss")) continue;
    const std::int64_t step = object["step"];
    trail.steps[step] = {object["loss"], object["grad_norm"]};
    trail.learning_rates[step] = object["learning_rate"];
  }
  return trail;
}

std::vector<std::byte> vector_of(const CheckpointReader& reader, int index) {
  const StateVector& vector = reader.info().vectors[static_cast<std::size_t>(index)];
  std::vector<std::byte> bytes(state_vector_bytes(vector));
  reader.read(index, 0, vector.count, bytes);
  return bytes;
}

void make_directory(FileSystem& files, const std::string& path) {
  if (files.is_directory(path)) return;
  files.make_directory(path);
  files.sync_directory(fs::path(path).parent_path().string());
}

}  // namespace

ResumeBench::ResumeBench(const SimOptions& disk) : disk_(make_sim_engine(disk)), engine_(disk_) {}

void ResumeBench::prepare(RunConfig& config, int world) {
  config.world = world;
  config.ranks = world;
  if (config.offload.nvme_paths.empty()) config.offload.nvme_paths = {"/nvme"};
  FileSystem& files = engine_->file_system();
  for (const std::string& path : config.offload.nvme_paths) make_directory(files, path);
  make_directory(files, config.output_dir.string());
}

void ResumeBench::make_lasting_folders(const RunConfig& config) {
  FileSystem& files = disk().file_system();
  files.make_directory("/nvme");
  files.make_directory(config.output_dir.string());
  files.sync_directory(config.output_dir.parent_path().string());
}

RunTrail ResumeBench::train(RunConfig config, int world, const std::string& checkpoint,
                            const ChangeRank& change) {
  prepare(config, world);
  config.resume_from_checkpoint = checkpoint;
  const std::unique_ptr<CheckpointReader> resume =
      checkpoint.empty() ? nullptr : CheckpointReader::open(*engine_, checkpoint);
  SessionOptions shared;
  shared.resume = checkpoint;
  return run(config, shared, resume == nullptr ? nullptr : &resume->info().note, change);
}

RunTrail ResumeBench::go_on(RunConfig config, int world, const ChangeRank& change) {
  prepare(config, world);
  const ResumePoint point = choose_resume_point(config, *engine_, alone(), true);
  SessionOptions shared;
  shared.point = &point;
  if (point.checkpoint) shared.resume = point.checkpoint->path;
  RunTrail trail = run(config, shared, point.note(), change);
  forget_removed_stores(engine_->file_system(), config.output_dir.string(), alone(), true);
  return trail;
}

RunTrail ResumeBench::run(const RunConfig& config, const SessionOptions& shared,
                          const RunNote* from, const ChangeRank& change) {
  TierLimits limits;
  limits.drive_bytes.assign(config.offload.nvme_paths.size(), std::uint64_t{1} << 40);
  std::vector<RankLinks> links = make_local_ranks(config.world);
  const fs::path exported = fresh_folder("export");
  std::vector<TrainOutcome> outcomes(static_cast<std::size_t>(config.world));
  run_ranks(links, [&](RankLinks& own) {
    ResumedRank given;
    given.rank = own.data->rank();
    if (change) change(given);
    SessionOptions options = shared;
    options.links = &own;
    options.executor = given.executor;
    options.make_engine = [this](const OffloadConfig&) { return engine_; };
    Session session(config,
                    plan_run(config, Purpose::train, read_topology(),
                             {given.rank, config.world, given.rank, config.world}, limits,
                             given.open_device ? given.open_device() : RankDevice{}),
                    options);
    TrainerOptions watched;
    watched.resume = from;
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> quiet(std::fopen("/dev/null", "w"),
                                                                std::fclose);
    std::unique_ptr<Progress> progress;
    if (given.rank == 0)
      progress = std::make_unique<Progress>(config.output_dir, Style::plain, quiet.get(),
                                            from == nullptr ? -1 : from->step);
    outcomes[static_cast<std::size_t>(given.rank)] =
        Trainer(config, session, progress.get(), watched).run(given.stop, given.save);
    if (given.at_end) given.at_end(session, outcomes[static_cast<std::size_t>(given.rank)]);
    session.export_to(exported / "model");
    session.end_durable();
  });
  RunTrail trail = read_trail(config.output_dir / "metrics.jsonl");
  trail.weights = read_bytes(exported / "model" / "model.safetensors");
  trail.outcomes = std::move(outcomes);
  fs::remove_all(exported);
  return trail;
}

RunConfig saving_config(const TrainingFiles& files, std::int64_t save_steps,
                        std::int64_t max_steps) {
  RunConfig config = tiny_config(files);
  config.max_steps = max_steps;
  config.evaluate = false;
  config.output_dir = fresh_folder("run");
  config.save_steps = static_cast<double>(save_steps);
  return config;
}

std::string checkpoint_of(const RunConfig& config, std::int64_t step) {
  return (config.output_dir / ("checkpoint-" + std::to_string(step))).string();
}

std::string checkpoint_difference(IoEngine& disk, const std::string& one,
                                  const std::string& other) {
  const auto a = CheckpointReader::open(disk, one), b = CheckpointReader::open(disk, other);
  if (a->info().vectors != b->info().vectors) return "vectors";
  if (a->info().note != b->info().note) return "note";
  if (!a->verify().empty()) return a->verify().front();
  for (int i = 0; i < std::ssize(a->info().vectors); ++i)
    if (vector_of(*a, i) != vector_of(*b, i))
      return state_vector_name(a->info().vectors[static_cast<std::size_t>(i)]);
  return "";
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
