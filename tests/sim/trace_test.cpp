// Watching a run: its trace and its roofline. What is watched must not change.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "sim/tiny_training.hpp"
#include "strata/train/predicted_step.hpp"
#include "support/execution_modes.hpp"
#include "support/file_size_limit.hpp"
#include "support/trace_reader.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;
using testing::difference;
using testing::Outcome;
using testing::plan_here;
using testing::read_trace;
using testing::tiny_config;
using testing::tiny_files;
using testing::TraceContent;
using testing::TrainingRun;

// State on every tier.
RunConfig placed_config() {
  static const fs::path drive = testing::fresh_folder("drive");
  RunConfig config = tiny_config(tiny_files());
  config.offload.nvme_paths = {drive.string()};
  config.max_steps = 10;
  config.offload.master = config.offload.moment1 = {0.25, 0.25, 0.5};
  config.offload.weights = {0, 0.5, 0.5};
  return config;
}

fs::path trace_path() {
  static int count = 0;
  return testing::fresh_folder("trace") / ("run" + std::to_string(count++) + ".json");
}

struct Watched {
  Outcome outcome;
  TrainOutcome training;
  std::vector<nlohmann::json> steps;  // of metrics.jsonl
};

std::vector<nlohmann::json> read_steps(const fs::path& path) {
  std::vector<nlohmann::json> steps;
  std::ifstream file(path);
  for (std::string text; std::getline(file, text);) {
    auto line = nlohmann::json::parse(text);
    if (line.contains("grad_norm") || line.contains("event")) steps.push_back(std::move(line));
  }
  return steps;
}

Watched watch(const RunConfig& config, const TrainerOptions& options, ExecutionMode mode) {
  TrainingRun run(config, {mode, 1}, make_offload_engine, plan_here, options);
  Watched watched;
  watched.training = run.train();
  watched.outcome = run.outcome();
  watched.steps = read_steps(run.output_dir() / "metrics.jsonl");
  return watched;
}

MachineProfile traced_machine() {
  MachineProfile machine;
  machine.name = "test";
  machine.accelerator.memory_bytes = 1ull << 34;
  machine.accelerator.memory_bytes_per_s = 1e10;
  machine.accelerator.bf16 = machine.accelerator.f32 = {{1e6, 1e10}};
  machine.link = {5e9, 5e9, 0};
  machine.host.memory_bytes = 1ull << 34;
  machine.host.memory_bytes_per_s = 2e10;
  machine.comm = {1e9, 1e9, 0};
  machine.drives.push_back({1ull << 34, 1e9, 1e9, 0, 0});
  return machine;
}

std::set<std::string> steps_of(const TraceContent& trace, int process = 1) {
  std::set<std::string> steps;
  for (const auto& span : trace.spans)
    if (span.row.first == process) steps.insert(span.arguments.at("step"));
  return steps;
}

// Of each op that takes time, as most do: the clock has nanoseconds.
std::size_t num_ops(const TraceContent& trace, int process, const std::string& step) {
  std::set<std::string> ops;
  for (const auto& span : trace.spans)
    if (span.row.first == process && span.arguments.at("step") == step) {
      EXPECT_TRUE(ops.insert(span.arguments.at("op")).second) << span.name;
    }
  return ops.size();
}

class TracedRun : public ::testing::TestWithParam<ExecutionMode> {};

INSTANTIATE_TEST_SUITE_P(Modes, TracedRun, testing::all_modes(), testing::mode_name);

// Over an evaluation, which comes between steps 7 and 8.
TEST_P(TracedRun, HasTheBitsOfAnUntracedOneAndASpanForEveryOp) {
  const RunConfig config = placed_config();
  const fs::path path = trace_path();
  TraceFile file(path);
  const Watched traced = watch(config, {&file, 6}, GetParam());
  const Watched plain = watch(config, {}, GetParam());
  EXPECT_EQ(difference(plain.outcome, traced.outcome), "");
  const TraceContent trace = read_trace(path);
  const std::size_t ops = plan_here(config).plan.schedule("train")->ops.size();
  for (const std::string& step : steps_of(trace)) {
    EXPECT_LE(num_ops(trace, 1, step), ops) << step;
    EXPECT_GT(num_ops(trace, 1, step), ops / 2) << step;
  }
  EXPECT_EQ(trace.step_spans.size(), 6u);
  EXPECT_EQ(steps_of(trace), (std::set<std::string>{"3", "4", "5", "6", "7", "8"}));
  EXPECT_EQ(trace.overlaps(), 0);
  EXPECT_EQ(trace.processes.at(1), "rank 0");
  EXPECT_FALSE(trace.flows.empty());
  for (const auto& [id, flow] : trace.flows) EXPECT_TRUE(flow.to) << id;
  EXPECT_TRUE(trace.counters.contains("h2d"));
}

TEST(Trace, IsOfTheLastStepsWhenThereAreFew) {
  RunConfig config = placed_config();
  config.max_steps = 4;
  for (const std::int64_t wanted : {1, 3, 9}) {
    const fs::path path = trace_path();
    TraceFile file(path);
    watch(config, {&file, wanted}, ExecutionMode::threaded);
    std::set<std::string> expected = {"1", "2", "3", "4"};
    if (wanted == 1) expected = {"3"};
    if (wanted == 3) expected = {"2", "3", "4"};
    EXPECT_EQ(steps_of(read_trace(path)), expected) << wanted;
  }
}

TEST(Trace, PutsWhatWasPredictedBesideTheFirstStep) {
  const RunConfig config = placed_config();
  const fs::path path = trace_path();
  TraceFile file(path);
  watch(config, {&file, 1, predict_step(plan_here(config), traced_machine())},
        ExecutionMode::threaded);
  const TraceContent trace = read_trace(path);
  EXPECT_EQ(steps_of(trace, 1), (std::set<std::string>{"3"}));
  EXPECT_EQ(steps_of(trace, 2), (std::set<std::string>{"1", "2"}));
  EXPECT_EQ(num_ops(trace, 2, "1"), num_ops(trace, 2, "2"));
  EXPECT_GT(num_ops(trace, 2, "1"), num_ops(trace, 1, "3") / 2);
  EXPECT_EQ(trace.step_spans.size(), 3u);
  EXPECT_EQ(trace.overlaps(), 0);
  EXPECT_EQ(trace.processes.at(2), "rank 0, predicted");
  std::set<std::string> measured, predicted;  // of lanes
  for (const auto& [row, name] : trace.rows)
    (row.first == 1 ? measured : predicted).insert(name.substr(0, name.find(' ')));
  EXPECT_EQ(measured, predicted);
}

TEST(Trace, ThatTheDiskHasNoRoomForDoesNotEndTheRun) {
  RunConfig config = placed_config();
  config.max_steps = 5;
  config.offload.master = config.offload.moment1 = config.offload.weights = {};
  const fs::path path = trace_path();
  TraceFile file(path);
  TrainingRun run(config, {}, make_offload_engine, plan_here, {&file, 2});
  {
    const FileSizeLimit limit(20'000);  // room for the metrics
    EXPECT_EQ(run.train().steps, 5);
  }
  EXPECT_TRUE(read_trace(path).spans.empty());
  bool told = false;
  for (const auto& line : read_steps(run.output_dir() / "metrics.jsonl"))
    told = told || line.value("event", "") == "trace";
  EXPECT_TRUE(told);
}

TEST(LiveRoofline, TellsWhatEachStepReachedOnceOneIsComplete) {
  const RunConfig config = placed_config();
  const Watched watched = watch(config, {}, ExecutionMode::threaded);
  ASSERT_EQ(watched.steps.size(), 10u);
  EXPECT_FALSE(watched.steps[0].contains("offload/used_compute"));
  for (std::size_t i = 2; i < watched.steps.size(); ++i) {
    for (const auto& [key, value] : watched.steps[i].items())
      if (key.starts_with("offload/used_")) {
        EXPECT_LE(value, 1) << key;
      }
    EXPECT_GT(watched.steps[i]["offload/used_compute"], 0);
    EXPECT_GT(watched.steps[i]["offload/bytes_per_second_nvme_read"], 0);
    EXPECT_GT(watched.steps[i]["offload/bytes_per_second_h2d"], 0);
    EXPECT_FALSE(watched.steps[i].contains("offload/roofline_compute"));
  }
}

TEST(LiveRoofline, IsOfEveryStepAfterTheFirstTwo) {
  const RunConfig config = placed_config();
  const PlannedRun planned = plan_here(config);
  const Roofline roofline = watch(config, {}, ExecutionMode::threaded).training.roofline;
  EXPECT_EQ(roofline.num_steps, config.max_steps - 2);
  EXPECT_GT(roofline.measured.seconds, 0);
  EXPECT_GT(roofline.measured.busy[static_cast<std::size_t>(Resource::compute)], 0);
  EXPECT_EQ(roofline.bytes[static_cast<std::size_t>(Resource::nvme_read)],
            nvme_traffic(planned.plan, "train").read_bytes());
  EXPECT_FALSE(roofline.predicted);
}

TEST(LiveRoofline, ComparesWithWhatWasPredicted) {
  const RunConfig config = placed_config();
  const auto predicted = predict_step(plan_here(config), traced_machine());
  ASSERT_TRUE(predicted);
  const Watched watched = watch(config, {nullptr, 1, predicted}, ExecutionMode::threaded);
  const Roofline& roofline = watched.training.roofline;
  ASSERT_TRUE(roofline.predicted);
  EXPECT_EQ(roofline.predicted->use.seconds, predicted->step_seconds);
  EXPECT_EQ(roofline.predicted->bound_seconds(), predicted->bound_seconds());
  EXPECT_GT(watched.steps.back()["offload/roofline_nvme_read"], 0);
  EXPECT_THAT(format_roofline(roofline), ::testing::HasSubstr("of the bound"));
  // Where the simulator counts an op under way on a lane, so does the table.
  EXPECT_NEAR(roofline.predicted->use.busy[static_cast<std::size_t>(Resource::compute)],
              predicted->lane_busy[static_cast<std::size_t>(Lane::compute)],
              1e-3 * predicted->step_seconds);
}

TEST(PredictedStep, IsNoneWithoutAMachine) {
  EXPECT_FALSE(predict_step(plan_here(placed_config()), {}));
}

}  // namespace
}  // namespace strata
