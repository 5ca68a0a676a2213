// A checkpoint that is written while training goes on, and a disk that fails, or a run that is
// stopped meanwhile.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <fstream>
#include <iterator>

#include "sim/resumed_run.hpp"
#include "support/one_fault_engine.hpp"
#include "support/polling.hpp"

namespace strata {
namespace {

using ::testing::Contains;
using testing::difference_after;
using ::testing::ElementsAre;
using testing::ForwardingEngine;
using testing::fresh_folder;
using ::testing::HasSubstr;
using testing::OneFault;
using testing::OneFaultEngine;
using testing::ResumeBench;
using testing::RunTrail;
using testing::RunWatch;
using ::testing::ThrowsMessage;
using testing::tiny_config;
using testing::tiny_files;

// Everything in RAM: the disk is the checkpoints' alone.
RunConfig config_of(int world, std::int64_t save_steps, std::int64_t steps) {
  RunConfig config = tiny_config(tiny_files());
  config.max_steps = steps;
  config.evaluate = false;
  config.gradient_accumulation_steps = 6 / world;
  config.output_dir = fresh_folder("run");
  config.save_steps = static_cast<double>(save_steps);
  return config;
}

std::vector<std::int64_t> whole_checkpoints(IoEngine& engine, const RunConfig& config) {
  std::vector<std::int64_t> steps;
  for (const CheckpointEntry& entry :
       list_checkpoints(engine.file_system(), config.output_dir.string())) {
    const auto reader = CheckpointReader::open(engine, entry.path);
    if (reader->verify().empty()) steps.push_back(entry.step);
  }
  return steps;
}

// Told when a rank's step reports, by the number of such steps so far.
std::function<void(const Op&)> at_reports(std::function<void(int)> tell) {
  return [tell = std::move(tell), count = std::make_shared<std::atomic<int>>(0)](const Op& op) {
    if (op.kind == OpKind::report) tell(++*count);
  };
}

struct SaveFaultCase {
  int error_number;
  OneFault::Lasting lasting;
  int world;
};

// A run with a good checkpoint, of step 2, is gone on with to step 5: of the operations of the
// checkpoint of step 4 one fails.
class BackgroundSaveFault : public ::testing::TestWithParam<SaveFaultCase> {
 protected:
  BackgroundSaveFault()
      : engine_(std::make_shared<OneFaultEngine>(make_sim_engine({}))), bench_(engine_) {}

  RunConfig config() const { return config_of(GetParam().world, 2, 5); }
  // The operations of the second checkpoint are counted from 0 on.
  RunTrail train_with_fault(const RunConfig& config, std::uint64_t at) {
    RunConfig first = config;
    first.max_steps = 2;
    bench_.train(first, GetParam().world);
    RunWatch watch;
    watch.before_op_of_first = at_reports([&](int report) {
      if (report == 2) engine_->fault().arm(at, GetParam().error_number, GetParam().lasting);
    });
    RunTrail trail = bench_.train(config, GetParam().world,
                                  (config.output_dir / "checkpoint-2").string(), watch);
    operations_ = engine_->fault().count();
    engine_->fault().disarm();
    return trail;
  }
  void expect_the_good_one(const RunConfig& config, const RunTrail& trail) {
    clear_unfinished_checkpoints(engine_->file_system(), config.output_dir.string());
    const auto whole = whole_checkpoints(*engine_, config);
    const bool failed = std::ranges::count_if(trail.events, [](const std::string& text) {
                          return text.starts_with("no checkpoint at step 4: ");
                        }) == 1;
    EXPECT_THAT(whole, Contains(2));
    EXPECT_EQ(trail.saved.size(), failed ? 1u : 2u);
    if (!failed) {
      EXPECT_THAT(whole, ElementsAre(2, 4));
    } else if (GetParam().lasting == OneFault::Lasting::once) {
      EXPECT_THAT(whole, ElementsAre(2));
    }
    num_failed_ += failed ? 1 : 0;
  }

  static constexpr std::uint64_t never = ~std::uint64_t{0};
  std::shared_ptr<OneFaultEngine> engine_;
  ResumeBench bench_;
  std::uint64_t operations_ = 0;
  int num_failed_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Of, BackgroundSaveFault,
                         ::testing::Values(SaveFaultCase{ENOSPC, OneFault::Lasting::once, 1},
                                           SaveFaultCase{EIO, OneFault::Lasting::from_then_on, 1},
                                           SaveFaultCase{EIO, OneFault::Lasting::once, 3},
                                           SaveFaultCase{ENOSPC, OneFault::Lasting::from_then_on,
                                                         3}),
                         [](const auto& parameter) {
                           const SaveFaultCase& fault = parameter.param;
                           return std::string(fault.error_number == EIO ? "EIO" : "ENOSPC") +
                                  (fault.lasting == OneFault::Lasting::once ? "Once"
                                                                            : "FromThenOn") +
                                  "On" + std::to_string(fault.world);
                         });

TEST_P(BackgroundSaveFault, AtAnyOperationLeavesTheLastGoodOneAndTrainingAsItIs) {
  const RunTrail plain = train_with_fault(config(), never);
  ASSERT_THAT(plain.saved, ElementsAre(2, 4));
  const std::uint64_t total = operations_;
  constexpr std::uint64_t rounds = 9;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const RunConfig failing = config();
    const std::uint64_t at = round * (total - 1) / (rounds - 1);
    SCOPED_TRACE(::testing::Message() << "operation " << at << " of " << total);
    const RunTrail trail = train_with_fault(failing, at);
    EXPECT_EQ(difference_after(0, plain, trail), "");
    expect_the_good_one(failing, trail);
    for (const TrainOutcome& outcome : trail.outcomes) EXPECT_EQ(outcome.failure, "");
  }
  EXPECT_GT(num_failed_, 4);
}

TEST_P(BackgroundSaveFault, EndsTheRunWhereItIsToldTo) {
  RunConfig failing = config();
  failing.on_save_failure = SaveFailurePolicy::stop;
  failing.max_steps = 1000;
  train_with_fault(config(), never);
  const RunTrail trail = train_with_fault(failing, operations_ / 3);
  ASSERT_EQ(trail.outcomes.size(), static_cast<std::size_t>(GetParam().world));
  for (const TrainOutcome& outcome : trail.outcomes) {
    EXPECT_THAT(outcome.failure, HasSubstr("no checkpoint at step 4"));
    EXPECT_THAT(outcome.failure, HasSubstr("on_save_failure"));
    EXPECT_GE(outcome.steps, 4);
    EXPECT_LE(outcome.steps, 6);  // The next save, at the latest, finds out.
    EXPECT_EQ(outcome.updates, outcome.steps - 2);
    EXPECT_EQ(outcome.checkpoint, "");
  }
}

// Its flushes wait until somebody allows them.
class FlushGateEngine : public ForwardingEngine {
 public:
  using ForwardingEngine::ForwardingEngine;
  void sync(FileId file) override {
    if (may_flush) testing::comes_true(may_flush);
    real().sync(file);
  }
  std::function<bool()> may_flush;
};

std::vector<std::string> names_in(IoEngine& engine, const RunConfig& config) {
  return engine.file_system().list(config.output_dir.string());
}

class BackgroundSaveOfAFailingRun : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(OnRanks, BackgroundSaveOfAFailingRun, ::testing::Values(1, 3));

TEST_P(BackgroundSaveOfAFailingRun, IsDroppedAndLeavesNothing) {
  const RunConfig config = config_of(GetParam(), 2, 8);
  ResumeBench bench;
  RunWatch watch;
  // The step that carries the checkpoint of step 4 fails: no later step's end commits it.
  watch.before_op_of_first = at_reports([&](int step) {
    if (step == 5) throw Error("the test's own failure");
  });
  EXPECT_THAT([&] { bench.train(config, GetParam(), "", watch); },
              ThrowsMessage<Error>(HasSubstr("the test's own failure")));
  EXPECT_THAT(names_in(bench.disk(), config), ElementsAre("checkpoint-2"));
  EXPECT_THAT(whole_checkpoints(bench.disk(), config), ElementsAre(2));
}

class StopMeanwhile : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(OnRanks, StopMeanwhile, ::testing::Values(1, 3));

TEST_P(StopMeanwhile, CommitsTheNewestStateInPlaceOfWhatIsNotAllWritten) {
  const RunConfig config = config_of(GetParam(), 3, 8);
  const auto engine = std::make_shared<FlushGateEngine>(make_sim_engine({}));
  ResumeBench bench(engine);
  engine->may_flush = [log = config.output_dir / "metrics.jsonl"] {
    std::ifstream stream(log);
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    return text.find("gives way to that of step 5") != std::string::npos;
  };
  std::atomic<bool> stop = false;
  RunWatch watch;
  watch.stop = &stop;
  watch.before_op_of_first = at_reports([&](int step) { stop = step == 5; });
  const RunTrail stopped = bench.train(config, GetParam(), "", watch);
  EXPECT_THAT(whole_checkpoints(*engine, config), ElementsAre(5));
  EXPECT_THAT(stopped.saved, ElementsAre(5));
  EXPECT_TRUE(stopped.outcomes[0].stopped);

  engine->may_flush = {};
  const RunTrail whole = bench.train(config_of(GetParam(), 500, 8), GetParam());
  const RunTrail resumed = bench.train(config_of(GetParam(), 500, 8), GetParam(),
                                       (config.output_dir / "checkpoint-5").string());
  EXPECT_EQ(difference_after(5, whole, resumed), "");
}

TEST_P(StopMeanwhile, AtAnyStepLeavesTheNewestState) {
  for (int at = 1; at <= 6; ++at) {
    const RunConfig config = config_of(GetParam(), 2, 8);
    ResumeBench bench;
    std::atomic<bool> stop = false;
    RunWatch watch;
    watch.stop = &stop;
    watch.before_op_of_first = at_reports([&](int step) { stop = step == at; });
    const RunTrail stopped = bench.train(config, GetParam(), "", watch);
    EXPECT_EQ(stopped.outcomes[0].steps, at);
    EXPECT_EQ(whole_checkpoints(bench.disk(), config).back(), at);
    EXPECT_EQ(stopped.saved.back(), at);
  }
}

}  // namespace
}  // namespace strata
