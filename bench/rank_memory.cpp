// How much model state one rank holds, by ZeRO stage and number of ranks: planned, against the
// formula, and measured where all ranks fit into --measure-up-to: after a training step, the bytes
// of the homes that memory backs. All state is in CPU memory. Prints a table in markdown. Exits
// with 1 when a plan is not as the formula says or a rank has touched less or more than its plan.
//
//   rank_memory [--model smollm2-135m | FOLDER] [--worlds 1 2 4 8] [--measure-up-to GIB]

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "strata/checkpoint/random_model.hpp"
#include "strata/core/bytes.hpp"
#include "tests/sim/rank_memory.hpp"

namespace strata::bench {
namespace {

namespace fs = std::filesystem;
using strata::testing::state_parts;
using strata::testing::StateBytes;

struct Options {
  std::string model = "smollm2-135m";
  std::vector<int> worlds = {1, 2, 4, 8};
  double measure_up_to_gib = 8;
};

// A preset, or a folder with a config.json.
HfConfig model_config(const std::string& model) {
  return fs::is_directory(model) ? read_hf_config(model) : random_model_preset(model);
}

RunConfig run_config(const strata::testing::TrainingFiles& files, int world, int stage) {
  RunConfig config = strata::testing::tiny_config(files);
  config.max_steps = 1;
  config.evaluate = false;
  config.cutoff_len = 16;
  config.offload.tile_bytes = 16 * MiB;
  return strata::testing::of_ranks(config, world, stage);
}

// The rank that holds most of each.
StateBytes most_touched(const strata::testing::MeasuredRanks& measured) {
  StateBytes most;
  for (const auto& state : measured.states)
    for (std::size_t i = 0; i < most.of.size(); ++i)
      most.of[i] = std::max(most.of[i], state.touched.of[i]);
  return most;
}

// Whole pages are touched, and a home's edges are its neighbours' too.
bool is_as_planned(const StateBytes& touched, const StateBytes& planned) {
  return std::ranges::equal(touched.of, planned.of, [](std::uint64_t got, std::uint64_t plan) {
    return got <= plan && static_cast<double>(got) >= 0.99 * static_cast<double>(plan);
  });
}

std::string mib(std::uint64_t bytes) {
  return fmt::format("{:.1f}", static_cast<double>(bytes) / static_cast<double>(MiB));
}

class Table {
 public:
  explicit Table(const Options& options)
      : options_(options),
        files_(
            strata::testing::make_training_files(model_config(options.model), 100, DType::bf16)) {}
  ~Table() { fs::remove_all(files_.model.parent_path()); }

  bool print() {
    fmt::print(
        "| stage | ranks | weight | gradient | master | moments | all, MiB | formula | "
        "measured |\n|---|---|---|---|---|---|---|---|---|\n");
    bool sound = true;
    for (int stage = 0; stage < 4; ++stage)
      for (const int world : options_.worlds) sound = print_row(stage, world) && sound;
    return sound;
  }

 private:
  bool print_row(int stage, int world) const {
    const RunConfig config = run_config(files_, world, stage);
    const PlannedRun run = strata::testing::plan_of_rank(config, 0);
    const StateBytes planned = strata::testing::planned_bytes(run.plan);
    const StateBytes formula = strata::testing::formula_bytes(run);
    const std::uint64_t all_ranks =
        static_cast<std::uint64_t>(world) * (run.plan.tier_bytes[0] + run.plan.tier_bytes[1]);
    std::string measured = "does not fit";
    bool sound = planned == formula;
    if (static_cast<double>(all_ranks) <= options_.measure_up_to_gib * static_cast<double>(GiB)) {
      const StateBytes touched = most_touched(strata::testing::measure_ranks(config));
      sound = sound && is_as_planned(touched, planned);
      measured = mib(touched.total());
    }
    fmt::print("| {} | {} |", stage, world);
    for (const auto part : state_parts) fmt::print(" {} |", mib(planned[part]));
    fmt::print(" {} | {} | {} |\n", mib(planned.total()),
               planned == formula ? "same" : mib(formula.total()), measured);
    std::fflush(stdout);
    return sound;
  }

  const Options options_;
  const strata::testing::TrainingFiles files_;
};

}  // namespace
}  // namespace strata::bench

int main(int argc, char** argv) {
  CLI::App app("Model state of one rank by ZeRO stage and number of ranks");
  strata::bench::Options options;
  app.add_option("--model", options.model, "A preset of make-model, or a model folder");
  app.add_option("--worlds", options.worlds, "Numbers of ranks");
  app.add_option("--measure-up-to", options.measure_up_to_gib,
                 "Train where all ranks together need at most so many GiB");
  CLI11_PARSE(app, argc, argv);
  return strata::bench::Table(options).print() ? 0 : 1;
}
