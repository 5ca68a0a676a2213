#include "strata/train/rank_device.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "sim/tiny_training.hpp"
#include "strata/checkpoint/random_model.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"
#include "strata/train/planned_run.hpp"

namespace strata {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// Whose driver works.
SeenGpus machine_with(int gpus) {
  SeenGpus seen;
  for (int ordinal = 0; ordinal < gpus; ++ordinal) {
    CudaDeviceFacts facts;
    facts.ordinal = ordinal;
    facts.name = "GPU";
    seen.cuda.devices.push_back(facts);
    seen.kernel.gpus.push_back(
        {"0000:4" + std::to_string(ordinal) + ":00.0", "", "nvidia", {}, ""});
  }
  if (gpus == 0) seen.cuda.failure = "no driver is loaded";
  return seen;
}

SeenGpus machine_with_a_broken_driver(int gpus) {
  SeenGpus seen = machine_with(gpus);
  seen.cuda.devices.clear();
  seen.cuda.failure = "the driver is too old";
  return seen;
}

RunConfig with_device(DeviceKind kind, int world = 1) {
  RunConfig config;
  config.device = kind;
  config.world = world;
  return config;
}

TEST(DeviceChoice, IsAGpuForEachRankWhereThereAreSome) {
  for (const DeviceKind kind : {DeviceKind::automatic, DeviceKind::gpu}) {
    const DeviceChoice choice = choose_device(with_device(kind), machine_with(1), 1);
    ASSERT_EQ(choice.gpus.size(), 1u);
    EXPECT_EQ(choice.gpus[0].ordinal, 0);
    EXPECT_EQ(choice.note, "");
  }
}

TEST(DeviceChoice, TellsOfGpusThatNoRankUses) {
  RunConfig config = with_device(DeviceKind::automatic);
  EXPECT_EQ(choose_device(config, machine_with(8), 1).note,
            "1 of 8 GPUs is used; ranks: 8 uses all");
  config.ranks = config.world = 2;
  EXPECT_EQ(choose_device(config, machine_with(8), 2).note,
            "2 of 8 GPUs are used; ranks: 8 uses all");
  config.ranks = 1;  // of several processes
  EXPECT_EQ(choose_device(config, machine_with(8), 2).note,
            "2 of 8 GPUs are used; 8 ranks on this host use all");
}

TEST(DeviceChoice, IsTheHostWithoutAWordWhereThereIsNoGpu) {
  const DeviceChoice choice = choose_device(with_device(DeviceKind::automatic), machine_with(0), 1);
  EXPECT_FALSE(choice.uses_gpus());
  EXPECT_EQ(choice.note, "");
}

TEST(DeviceChoice, RefusesTheHostWhereGpusCannotBeUsedAndSaysWhy) {
  EXPECT_THAT(
      [] { choose_device(with_device(DeviceKind::automatic), machine_with_a_broken_driver(8), 1); },
      ThrowsMessage<ConfigError>(AllOf(HasSubstr("8 NVIDIA GPUs"),
                                       HasSubstr("the driver is too old"),
                                       HasSubstr("strata doctor"), HasSubstr("device: cpu"))));
  EXPECT_FALSE(
      choose_device(with_device(DeviceKind::cpu), machine_with_a_broken_driver(8), 1).uses_gpus());
}

TEST(DeviceChoice, IsTheHostWithAWordWhereNothingIsSetUpForCuda) {
  SeenGpus other_driver = machine_with_a_broken_driver(1), no_cuda = other_driver;
  other_driver.kernel.gpus[0].driver = "nouveau";
  no_cuda.cuda.is_built = false;
  for (const SeenGpus& seen : {other_driver, no_cuda}) {
    const DeviceChoice choice = choose_device(with_device(DeviceKind::automatic), seen, 1);
    EXPECT_FALSE(choice.uses_gpus());
    EXPECT_THAT(choice.note, AllOf(HasSubstr("the host computes, not the 1 NVIDIA GPU"),
                                   HasSubstr("the driver is too old")));
  }
}

TEST(DeviceChoice, IsTheHostWhereGpusAreHiddenOnPurpose) {
  SeenGpus seen = machine_with_a_broken_driver(2);
  seen.cuda.is_hidden = true;
  const DeviceChoice choice = choose_device(with_device(DeviceKind::automatic), seen, 1);
  EXPECT_FALSE(choice.uses_gpus());
  EXPECT_THAT(choice.note, HasSubstr("CUDA_VISIBLE_DEVICES hides the GPUs"));
  EXPECT_THROW(choose_device(with_device(DeviceKind::gpu), seen, 1), ConfigError);
}

TEST(DeviceChoice, IsTheHostWhereAllGpusAreLentToVirtualMachines) {
  SeenGpus seen = machine_with_a_broken_driver(1);
  seen.kernel.gpus[0].driver = "vfio-pci";
  const DeviceChoice choice = choose_device(with_device(DeviceKind::automatic), seen, 1);
  EXPECT_FALSE(choice.uses_gpus());
  EXPECT_EQ(choice.note, "");
}

TEST(DeviceChoice, IsTheHostWhereTheConfigSaysSo) {
  EXPECT_FALSE(choose_device(with_device(DeviceKind::cpu), machine_with(2), 1).uses_gpus());
  RunConfig reference = with_device(DeviceKind::automatic);
  reference.kernels = KernelsKind::ref;
  EXPECT_FALSE(choose_device(reference, machine_with(2), 1).uses_gpus());
}

TEST(DeviceChoice, RefusesAGpuThatIsNotThereAndSaysWhy) {
  EXPECT_THAT([] { choose_device(with_device(DeviceKind::gpu), machine_with(0), 1); },
              ThrowsMessage<ConfigError>(
                  AllOf(HasSubstr("no driver is loaded"), HasSubstr("device: cpu"))));
}

TEST(DeviceChoice, RefusesAGpuOnAMachineThatHasNone) {
  SeenGpus here;
  here.cuda = read_cuda_devices();
  if (!here.cuda.devices.empty()) GTEST_SKIP() << "this machine has a GPU";
  EXPECT_NE(here.cuda.failure, "");
  EXPECT_THAT([&] { choose_device(with_device(DeviceKind::gpu), here, 1); },
              ThrowsMessage<ConfigError>(HasSubstr(here.cuda.failure)));
}

TEST(DeviceChoice, RefusesMoreRanksThanGpusWithBothNumbers) {
  EXPECT_THAT(
      [] { choose_device(with_device(DeviceKind::gpu, 4), machine_with(2), 4); },
      ThrowsMessage<ConfigError>(AllOf(HasSubstr("4 ranks on this host"), HasSubstr("2 GPUs"))));
}

TEST(DeviceChoice, IsAGpuForEachOfSeveralRanks) {
  const DeviceChoice choice =
      choose_device(with_device(DeviceKind::automatic, 2), machine_with(2), 2);
  EXPECT_EQ(choice.gpus.size(), 2u);
  EXPECT_EQ(choice.note, "");
}

TEST(DeviceChoice, NeedsNcclForSeveralRanks) {
  SeenGpus seen = machine_with(2);
  seen.nccl = {true, "", "libnccl.so.2 was not found"};
  for (const DeviceKind kind : {DeviceKind::automatic, DeviceKind::gpu})
    EXPECT_THAT([&] { choose_device(with_device(kind, 2), seen, 2); },
                ThrowsMessage<ConfigError>(AllOf(HasSubstr("libnccl.so.2 was not found"),
                                                 HasSubstr("ranks: 1"), HasSubstr("device: cpu"))));
  EXPECT_FALSE(choose_device(with_device(DeviceKind::cpu, 2), seen, 2).uses_gpus());
}

TEST(RankDeviceOptions, LetOneRanksMemoryStayPageableWithAWarning) {
  std::vector<std::string> told;
  DeviceChoice choice;
  EXPECT_FALSE(rank_device_options(choice, -1, 1).on_pageable) << "nobody would hear of it";
  choice.on_warning = [&](const std::string& text) { told.push_back(text); };
  rank_device_options(choice, -1, 1).on_pageable("cudaHostRegister of 1 GiB: no");
  ASSERT_EQ(told.size(), 1u);
  EXPECT_THAT(told[0], AllOf(HasSubstr("cudaHostRegister of 1 GiB: no. The run goes on"),
                             HasSubstr("not pinned"), HasSubstr("GB/s")));
  EXPECT_FALSE(rank_device_options(choice, -1, 2).on_pageable) << "NCCL needs it pinned";
}

TEST(RankDevice, IsNothingWhereTheHostStandsIn) {
  const RankDevice rank = open_rank_device({}, 0, 1);
  EXPECT_EQ(rank.device, nullptr);
  EXPECT_EQ(rank.kernels, nullptr);
  EXPECT_EQ(rank.workspace.bytes(), 0u);
}

std::uint64_t limit_of(const RunConfig& config, std::uint64_t free_bytes) {
  return device_limit(config, std::array{2 * free_bytes, free_bytes});
}

TEST(DeviceLimit, IsWhatIsFreeOnTheFullestGpuButForAReserve) {
  EXPECT_EQ(limit_of({}, 80 * GiB), 79 * GiB);
  EXPECT_EQ(limit_of({}, 8 * GiB), 8 * GiB - 512 * MiB);
  RunConfig config;
  config.offload.gpu_limit = 100 * GiB;
  EXPECT_EQ(limit_of(config, 80 * GiB), 79 * GiB);
}

TEST(DeviceLimit, LeavesWhatNcclTakesWhereThereAreSeveralRanks) {
  RunConfig config;
  config.world = 2;
  EXPECT_EQ(limit_of(config, 80 * GiB), 75 * GiB);
}

TEST(DeviceLimit, IsTheConfigsWithoutTheWorkspace) {
  RunConfig config;
  config.offload.gpu_limit = GiB;
  EXPECT_EQ(limit_of(config, 80 * GiB), GiB - 32 * MiB);
  config.world = 2;
  EXPECT_EQ(limit_of(config, 80 * GiB), GiB - 96 * MiB);
  config.world = 1;
  config.offload.gpu_limit = MiB;
  EXPECT_THAT([&] { limit_of(config, 80 * GiB); },
              ThrowsMessage<ConfigError>(HasSubstr("offload.gpu_limit")));
}

MachineProfile machine_of(const std::string& accelerator) {
  MachineProfile machine;
  machine.accelerator.name = accelerator;
  machine.accelerator.memory_bytes = 80 * GiB;
  machine.host.memory_bytes = 80 * GiB;
  return machine;
}

TEST(PlannedDevice, IsWhatTheMachineHasUnlessTheConfigSays) {
  const MachineProfile gpu = machine_of("NVIDIA H200"), host = machine_of(host_accelerator_name);
  EXPECT_EQ(planned_device({}, gpu), DeviceKind::gpu);
  EXPECT_EQ(planned_device({}, host), DeviceKind::cpu);
  EXPECT_EQ(planned_device(with_device(DeviceKind::cpu), gpu), DeviceKind::cpu);
}

TEST(PlannedDevice, HasTheWorkspaceOffItsLimit) {
  const MachineProfile gpu = machine_of("NVIDIA H200"), host = machine_of(host_accelerator_name);
  EXPECT_EQ(run_limits({}, host).device_bytes - run_limits({}, gpu).device_bytes, 32 * MiB);
}

std::uint64_t scratch_of(const PlannedRun& run) {
  std::uint64_t bytes = 0;
  for (const Segment& segment : run.program.segments) bytes += segment.scratch_bytes;
  return bytes;
}

TEST(PlannedDevice, SaysWhoseScratchAPlanHas) {
  const testing::TrainingFiles files = testing::make_training_files(random_model_preset("tiny"));
  RunConfig config = testing::tiny_config(files);
  const PlannedRun host = declare_run(config, program_variant(config));
  config.device = DeviceKind::gpu;
  const PlannedRun gpu = declare_run(config, program_variant(config));
  EXPECT_EQ(host.workspace_bytes, 0u);
  EXPECT_EQ(gpu.workspace_bytes, 32 * MiB);
  EXPECT_NE(scratch_of(host), scratch_of(gpu));
}

}  // namespace
}  // namespace strata
