#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "strata/core/philox.hpp"
#include "strata/telemetry/resource_use.hpp"
#include "strata/telemetry/trace.hpp"
#include "support/own_path.hpp"
#include "support/policies.hpp"
#include "support/toy_program.hpp"
#include "support/trace_reader.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;
using testing::make_toy_program;
using testing::read_trace;

struct Planned {
  Program program;
  Plan plan;
  const Schedule& train() const { return *plan.schedule("train"); }
};

Planned planned_on(const Policy& policy) {
  Program program = make_toy_program({.layers = 2, .micro_batches = 2});
  Plan plan = make_plan(program, testing::roomy_limits(), policy);
  return {std::move(program), std::move(plan)};
}

// A step in which everything takes as long as a seed says: an op starts when its edges within the
// step are met and its lane has issued what comes before, and on other lanes than NVMe's ended it.
std::vector<OpTime> legal_times(const Schedule& schedule, std::uint64_t seed, double from = 0) {
  PhiloxStream random(seed, 3);
  std::vector<OpTime> times(schedule.ops.size());
  std::array<double, num_lanes> free;
  free.fill(from);
  for (const Op& op : schedule.ops) {
    double& lane = free[static_cast<std::size_t>(op.lane)];
    double start = lane;
    for (const Edge& edge : op.after)
      if (edge.steps_back == 0) start = std::max(start, times[edge.op.index()].end);
    const double end = start + 1e-9 * static_cast<double>(random.next_below(1'000'000));
    times[op.id.index()] = {op.id, start, end};
    lane = is_nvme_lane(op.lane) ? start : end;
  }
  return times;
}

std::size_t num_timed(const std::vector<OpTime>& times) {
  return static_cast<std::size_t>(
      std::ranges::count_if(times, [](const OpTime& time) { return time.end > time.start; }));
}

// So long that the second of two steps begins after the first.
double whole_length(const std::vector<OpTime>& times) {
  return std::ranges::max_element(times, {}, &OpTime::end)->end -
         std::ranges::min_element(times, {}, &OpTime::start)->start;
}

class TraceStepTest : public ::testing::Test {
 protected:
  void SetUp() override { path_ = own_path("step.json"); }
  void TearDown() override { fs::remove(path_); }

  testing::TraceContent trace_of(const Planned& run, const std::vector<OpTime>& times,
                                 double at_s = 0) {
    TraceFile trace(path_);
    trace.name_process(0, "rank 0");
    trace_steps(trace, 0, run.program, run.plan, run.train(), times, at_s, whole_length(times));
    trace.close();
    return read_trace(path_);
  }
  fs::path path_;
};

TEST_F(TraceStepTest, HasASpanForEachOpOfEachStepWithItsTime) {
  const Planned run = planned_on(testing::all_on(Tier::nvme));
  const std::vector<OpTime> times = legal_times(run.train(), 1);
  const auto trace = trace_of(run, times, 5);
  std::set<std::pair<std::string, std::string>> ops;
  for (const auto& span : trace.spans) {
    const OpTime& time = times.at(std::stoul(span.arguments.at("op")));
    const double at_s = 5 + (span.arguments.at("step") == "2" ? whole_length(times) : 0);
    EXPECT_NEAR(span.start_us, (time.start + at_s) * 1e6, 1e-2);
    EXPECT_NEAR(span.end_us - span.start_us, (time.end - time.start) * 1e6, 1e-2);
    ops.insert({span.arguments.at("step"), span.arguments.at("op")});
  }
  EXPECT_EQ(ops.size(), 2 * num_timed(times));
  EXPECT_EQ(trace.spans.size(), 2 * num_timed(times));
}

TEST_F(TraceStepTest, HasARowOfTheStepsFromTheirFirstOpOfComputeToTheLast) {
  const Planned run = planned_on(testing::all_on(Tier::nvme));
  const std::vector<OpTime> times = legal_times(run.train(), 1);
  const auto trace = trace_of(run, times);
  const auto& compute = run.train().lanes[static_cast<std::size_t>(Lane::compute)];
  ASSERT_EQ(trace.step_spans.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto& span = trace.step_spans[i];
    const double at_s = i == 0 ? 0 : whole_length(times);
    EXPECT_EQ(span.name, i == 0 ? "step 1" : "step 2");
    EXPECT_EQ(trace.rows.at(span.row), "step");
    EXPECT_NEAR(span.start_us, (times[compute.front().index()].start + at_s) * 1e6, 1e-2);
    EXPECT_NEAR(span.end_us, (times[compute.back().index()].end + at_s) * 1e6, 1e-2);
  }
}

TEST_F(TraceStepTest, LeavesOutOpsThatTakeNoTime) {
  const Planned run = planned_on(testing::all_on(Tier::nvme));
  std::vector<OpTime> times = legal_times(run.train(), 1);
  for (std::size_t i = 0; i < times.size(); i += 2) times[i].end = times[i].start;
  const auto trace = trace_of(run, times);
  EXPECT_EQ(trace.spans.size(), 2 * num_timed(times));
  for (const auto& span : trace.spans) EXPECT_GT(span.end_us, span.start_us);
  EXPECT_FALSE(trace.flows.empty());
  for (const auto& [id, flow] : trace.flows) EXPECT_TRUE(flow.from && flow.to) << id;
}

// Viewers show a row's number beside its name.
TEST_F(TraceStepTest, NumbersRowsOneAfterTheOtherAndSortsThemByLane) {
  const Planned run = planned_on(testing::all_on(Tier::nvme));
  const auto trace = trace_of(run, legal_times(run.train(), 2));
  const int first = trace.rows.begin()->first.second;
  EXPECT_EQ(trace.rows.rbegin()->first.second, first + static_cast<int>(trace.rows.size()) - 1);
  std::map<int, std::string> sorted;
  for (const auto& [row, sorts_as] : trace.sorts_as) sorted[sorts_as] = trace.rows.at(row);
  ASSERT_EQ(sorted.size(), trace.rows.size());
  std::vector<std::string> names;
  for (const auto& [sorts_as, name] : sorted)
    if (const std::string lane = name.substr(0, name.find(' '));
        names.empty() || names.back() != lane)
      names.push_back(lane);
  std::vector<std::string> expected{"step"};
  for (int lane = 0; lane < num_lanes; ++lane)
    if (!run.train().lanes[static_cast<std::size_t>(lane)].empty())
      expected.emplace_back(lane_name(static_cast<Lane>(lane)));
  EXPECT_EQ(names, expected);
}

TEST_F(TraceStepTest, HasNamedRowsOnWhichNothingOverlaps) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const Planned run = planned_on(testing::random_policy(seed));
    const auto trace = trace_of(run, legal_times(run.train(), seed));
    EXPECT_EQ(trace.overlaps(), 0) << seed;
    for (const auto& span : trace.spans)
      EXPECT_TRUE(trace.rows.contains(span.row)) << span.row.second;
  }
}

TEST_F(TraceStepTest, HasOneRowForALaneInOrderAndSeveralForTransfersSideBySide) {
  const Planned run = planned_on(testing::all_on(Tier::nvme));
  const auto trace = trace_of(run, legal_times(run.train(), 2));
  std::map<std::string, int> rows;
  for (const auto& [row, name] : trace.rows) ++rows[name.substr(0, name.find(' '))];
  EXPECT_EQ(rows.at("compute"), 1);
  EXPECT_EQ(rows.at("h2d"), 1);
  EXPECT_GT(rows.at("read"), 1);
  EXPECT_GT(rows.at("state_read"), 1);
}

TEST_F(TraceStepTest, HasRowsForTheLanesInUseAlone) {
  for (const Tier tier : {Tier::device, Tier::host, Tier::nvme}) {
    const Planned run = planned_on(testing::all_on(tier));
    const auto trace = trace_of(run, legal_times(run.train(), 1));
    std::set<std::string> expected{"step"}, found;
    for (const Op& op : run.train().ops) expected.emplace(lane_name(op.lane));
    for (const auto& [row, name] : trace.rows) found.insert(name.substr(0, name.find(' ')));
    EXPECT_EQ(found, expected);
  }
}

TEST_F(TraceStepTest, LeadsFlowsFromTheEndOfASpanToTheStartOfALaterOne) {
  const Planned run = planned_on(testing::all_on(Tier::nvme));
  const auto trace = trace_of(run, legal_times(run.train(), 4));
  ASSERT_FALSE(trace.flows.empty());
  for (const auto& [id, flow] : trace.flows) {
    ASSERT_TRUE(flow.from && flow.to) << id;
    EXPECT_LE(flow.from->end_us, flow.to->start_us + 1e-3);
  }
}

// Of weights on NVMe: read to host memory, copied to the device, used by the forward pass.
TEST_F(TraceStepTest, FollowsAWeightFromTheDriveToItsUse) {
  const Planned run = planned_on(testing::all_on(Tier::nvme));
  const auto trace = trace_of(run, legal_times(run.train(), 4));
  std::set<std::pair<std::string, std::string>> kinds;
  for (const auto& [id, flow] : trace.flows) kinds.insert({flow.from->category, flow.to->category});
  EXPECT_TRUE(kinds.contains({"read", "copy"}));
  EXPECT_TRUE(kinds.contains({"copy", "run"}));
  EXPECT_TRUE(kinds.contains({"feed", "run"}));
  EXPECT_TRUE(kinds.contains({"read", "update"}));
  for (const auto& kind : kinds) EXPECT_NE(kind.first, "write");
}

TEST_F(TraceStepTest, CountsTheBytesOfEachLinkOverTime) {
  const Planned run = planned_on(testing::all_on(Tier::nvme));
  const auto trace = trace_of(run, legal_times(run.train(), 4));
  const PerResource<std::uint64_t> bytes = moved_bytes(run.plan, run.train());
  for (const Resource link :
       {Resource::up, Resource::down, Resource::nvme_read, Resource::nvme_write}) {
    const std::string name(resource_key(link));
    const double expected = 2 * static_cast<double>(bytes[static_cast<std::size_t>(link)]);
    EXPECT_GT(expected, 0);
    EXPECT_NEAR(trace.integral(name) / expected, 1, 1e-6) << name;
    EXPECT_EQ(trace.counters.at(name).back().second, 0) << name;
    EXPECT_EQ(trace.units.at(name), "bytes/s");
  }
}

TEST_F(TraceStepTest, MovesAStepThatWouldStartBelowZero) {
  const Planned run = planned_on(testing::all_on(Tier::host));
  const auto trace = trace_of(run, legal_times(run.train(), 1, -2));
  double earliest = 1e9;
  for (const auto& span : trace.spans) earliest = std::min(earliest, span.start_us);
  EXPECT_EQ(earliest, 0);
}

TEST_F(TraceStepTest, SharesRowsAmongStepsThatOverlap) {
  const Planned run = planned_on(testing::all_on(Tier::nvme));
  TraceFile file(path_);
  StepTracer tracer(file, 0, run.program, run.plan, run.train());
  const std::vector<OpTime> first = legal_times(run.train(), 1);
  tracer.step(first, 0, 1);
  std::array<double, num_lanes> ends{};  // of starts on NVMe lanes
  for (const Op& op : run.train().ops) {
    const OpTime& time = first[op.id.index()];
    double& end = ends[static_cast<std::size_t>(op.lane)];
    end = std::max(end, is_nvme_lane(op.lane) ? time.start : time.end);
  }
  std::vector<OpTime> second = legal_times(run.train(), 2);
  for (const Op& op : run.train().ops) {  // Each lane goes on as soon as it can.
    second[op.id.index()].start += ends[static_cast<std::size_t>(op.lane)];
    second[op.id.index()].end += ends[static_cast<std::size_t>(op.lane)];
  }
  tracer.step(second, 0, 2);
  tracer.finish();
  file.close();
  const auto trace = read_trace(path_);
  EXPECT_EQ(trace.overlaps(), 0);
  EXPECT_EQ(trace.spans.size(), num_timed(first) + num_timed(second));
  EXPECT_EQ(trace.step_spans.size(), 2u);
  std::set<std::string> names;
  for (const auto& [row, name] : trace.rows) EXPECT_TRUE(names.insert(name).second) << name;
}

}  // namespace
}  // namespace strata
