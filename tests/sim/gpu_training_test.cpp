// Whole runs on a GPU, which is a fake of one: the wiring of a run is right where its losses, its
// weights and what it logs have the bits of the host, whatever lives where, and the fake complains
// of nothing.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/fake_gpu.hpp"
#include "sim/rank_training.hpp"
#include "sim/tiny_training.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"
#include "support/sanitizers.hpp"

namespace strata {
namespace {

using testing::difference;
using testing::FakeGpu;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Outcome;
using testing::place_randomly;
using testing::place_state;
using testing::rounds;
using testing::tiny_config;
using testing::tiny_files;
using testing::train;
using testing::TrainingRun;

constexpr TierFractions all_on_gpu{1, 0, 0}, all_on_cpu{0, 1, 0}, all_on_nvme{0, 0, 1},
    mixed_tiers{0.3, 0.4, 0.3};

RunConfig short_config() {
  RunConfig config = tiny_config(tiny_files());
  config.max_steps = 5;
  config.eval_steps = 2;
  config.save_strategy = SaveStrategy::no;
  return config;
}

// The run on a fake GPU, which must complain of nothing.
Outcome train_on_gpu(const RunConfig& config, const ExecutorOptions& options = {},
                     std::uint64_t seed = 1) {
  FakeGpu gpu(seed);
  Outcome outcome;
  {
    TrainingRun run(config, gpu.watched(options), make_offload_engine,
                    [&](const RunConfig& placed) { return gpu.plan(placed); });
    run.train();
    outcome = run.outcome();
  }
  EXPECT_GT(gpu.num_launches(), 1000u) << "the GPU computes";
  EXPECT_EQ(gpu.complaints(), "");
  return outcome;
}

Outcome train_on_host(const RunConfig& config) { return train(config, {ExecutionMode::serial}); }

void expect_host_bits(const RunConfig& config, const Outcome& host, const std::string& what) {
  EXPECT_EQ(difference(host, train_on_gpu(config)), "") << what;
}

TEST(GpuTraining, HasTheBitsOfTheHostWhereverStateLives) {
  RunConfig config = short_config();
  const Outcome host = train_on_host(config);
  ASSERT_EQ(host.losses.size(), 5u);
  for (const TierFractions& tiers : {all_on_gpu, all_on_cpu, all_on_nvme, mixed_tiers}) {
    place_state(config, tiers);
    for (const double streamed : {0.0, 0.5, 1.0}) {
      config.offload.streamed_updates = streamed;
      expect_host_bits(config, host,
                       "gpu " + std::to_string(tiers.device) + " nvme " +
                           std::to_string(tiers.nvme) + " streamed " + std::to_string(streamed));
    }
  }
}

// Slowly: what is not pinned goes through buffers, and copies from the GPU are waited for.
TEST(GpuTraining, HasTheBitsOfTheHostWhereTheSystemPinsNothing) {
  RunConfig config = short_config();
  const Outcome host = train_on_host(config);
  for (const TierFractions& tiers : {all_on_cpu, all_on_nvme, mixed_tiers}) {
    place_state(config, tiers);
    config.offload.streamed_updates = 0.5;
    FakeGpu gpu(1, testing::Pinning::refused);
    Outcome outcome;
    {
      TrainingRun run(config, gpu.watched({}), make_offload_engine,
                      [&](const RunConfig& placed) { return gpu.plan(placed); });
      run.train();
      outcome = run.outcome();
    }
    EXPECT_EQ(difference(host, outcome), "") << "nvme " << tiers.nvme;
    EXPECT_EQ(gpu.pageable().size(), 1u) << "the session's host memory, told of once";
    EXPECT_EQ(gpu.complaints(), "");
  }
}

TEST(GpuTraining, HasTheBitsOfTheHostInEachUpdateOrder) {
  RunConfig config = short_config();
  config.max_grad_norm = 0;
  config.offload.update_order = "after_backward";
  const Outcome host = train_on_host(config);
  for (const char* order : {"after_backward", "deferred", "during_backward"}) {
    config.offload.update_order = order;
    for (const TierFractions& tiers : {all_on_gpu, all_on_cpu, mixed_tiers}) {
      place_state(config, tiers);
      for (const double streamed : {0.5, 1.0}) {
        config.offload.streamed_updates = streamed;
        expect_host_bits(config, host, order);
      }
    }
  }
}

TEST(GpuTraining, HasTheBitsOfTheHostUnderRandomPlacements) {
  const Outcome host = train_on_host(short_config());
  for (int i = 0; i < rounds(8, 2); ++i) {
    RunConfig config = short_config();
    place_randomly(config, 300 + static_cast<std::uint64_t>(i));
    config.offload.streamed_updates = 0.5 * (i % 3);
    const auto seed = static_cast<std::uint64_t>(i);
    EXPECT_EQ(difference(host, train_on_gpu(config, {}, seed)), "") << "placement " << i;
    const ExecutorOptions any_order{ExecutionMode::seeded, seed, Poison::on};
    EXPECT_EQ(difference(host, train_on_gpu(config, any_order, seed)), "") << "order " << i;
  }
}

TEST(GpuTraining, HasTheBitsOfTheHostWithEachFormatOfState) {
  for (const DType moments : {DType::bf16, DType::q8}) {
    RunConfig config = short_config();
    config.optimizer_moments = moments;
    config.optimizer_master = MasterFormat::split;
    const Outcome host = train_on_host(config);
    place_state(config, mixed_tiers);
    config.offload.streamed_updates = 0.5;
    expect_host_bits(config, host, std::string(dtype_name(moments)));
  }
}

TEST(GpuTraining, HasTheBitsOfTheHostWithKeptLayersAndFp32) {
  RunConfig config = short_config();
  config.bf16 = false;
  const Outcome host = train_on_host(config);
  config.offload.keep_layers = 2;
  config.offload.accumulation_group = 0;
  place_state(config, mixed_tiers);
  expect_host_bits(config, host, "mixed");
}

TEST(GpuTraining, ExportsItsMasters) {
  RunConfig config = short_config();
  config.export_dtype = DType::f32;
  const Outcome host = train_on_host(config);
  for (const TierFractions& tiers : {all_on_gpu, all_on_nvme, mixed_tiers}) {
    place_state(config, tiers);
    expect_host_bits(config, host, std::to_string(tiers.device));
  }
}

TEST(GpuEvaluation, HasTheLossOfTheHosts) {
  RunConfig config = short_config();
  place_state(config, {0.5, 0.5, 0});
  FakeGpu gpu;
  Session here(config, plan_run(config, Purpose::evaluate));
  Session there(config, gpu.plan(config, Purpose::evaluate), {gpu.watched()});
  const Evaluation expected = here.evaluate(*held_out_batches(config));
  const Evaluation got = there.evaluate(*held_out_batches(config));
  EXPECT_GT(expected.tokens, 0);
  EXPECT_EQ(got.tokens, expected.tokens);
  EXPECT_EQ(got.loss, expected.loss);
}

// What a run gives back when a call of the GPU fails, from its start to its end.
TEST(GpuTraining, EndsWithOneErrorWhicheverCallFailsAndGivesAllBack) {
  RunConfig config = short_config();
  config.max_steps = 2;
  config.evaluate = false;
  place_state(config, mixed_tiers);
  config.offload.streamed_updates = 0.5;
  const auto run_on = [&](FakeGpu& gpu) {
    TrainingRun run(config, gpu.watched(), make_offload_engine,
                    [&](const RunConfig& placed) { return gpu.plan(placed); });
    run.train();
  };
  std::uint64_t calls = 0;
  {
    FakeGpu gpu;
    run_on(gpu);
    calls = gpu.num_calls();
  }
  const auto tries = static_cast<std::uint64_t>(rounds(24, 6));
  std::uint64_t failed = 0;
  for (std::uint64_t i = 0; i < tries; ++i) {
    const std::uint64_t call = (2 * i + 1) * calls / (2 * tries);
    FakeGpu gpu(i, call);
    try {
      run_on(gpu);
    } catch (const Error&) {
      ++failed;
    }
    EXPECT_EQ(gpu.left_over(), "") << "call " << call;
  }
  EXPECT_GE(failed, tries / 2) << "calls that give something back may fail unheard";
}

TEST(GpuTraining, TellsOfAGpuAndOfTheUpdatesThreads) {
  FakeGpu gpu;
  TrainingRun run(short_config(), gpu.watched(), make_offload_engine,
                  [&](const RunConfig& config) { return gpu.plan(config); });
  const std::vector<std::string> notes = run.session().notes();
  EXPECT_EQ(notes.at(0), "device   Fake GPU, GPU 1");
  EXPECT_THAT(notes.at(1), HasSubstr("threads  update 1 "));
  for (const std::string& note : notes) EXPECT_THAT(note, Not(HasSubstr("compute")));
}

TEST(GpuTraining, MeasuresWhatItTakesOfTheGpu) {
  FakeGpu gpu;
  RunConfig config = short_config();
  place_state(config, mixed_tiers);
  TrainingRun run(config, gpu.watched(), make_offload_engine,
                  [&](const RunConfig& placed) { return gpu.plan(placed); });
  run.train();
  const PlannedRun& planned = run.session().run();
  EXPECT_EQ(planned.workspace_bytes, MiB);
  const TierPeak peak = run.session().peaks().at(0);
  EXPECT_EQ(peak.tier, "gpu");
  EXPECT_EQ(peak.planned_bytes, planned.plan.tier_bytes[0] + MiB);
  EXPECT_EQ(peak.measured_bytes, peak.planned_bytes);
}

TEST(GpuTraining, IsRefusedWhatTheGpuHasNot) {
  FakeGpu gpu;
  RunConfig config = short_config();
  place_state(config, all_on_gpu);
  config.offload.gpu_limit = 33 * MiB;  // one beside the workspace
  EXPECT_THROW(gpu.plan(config), OutOfMemory);
  config.offload.gpu_limit = 32 * MiB;
  EXPECT_THROW(gpu.plan(config), ConfigError);
}

TEST(FakeGpuDeathTest, FaultsWhereTheHostTouchesItsMemory) {
  FakeGpu gpu;
  const RankDevice rank = gpu.open();
  volatile std::byte* const first = rank.workspace.data();
  EXPECT_DEATH(*first = std::byte{1}, "");
}

}  // namespace
}  // namespace strata
