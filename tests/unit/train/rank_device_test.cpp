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

CudaInventory machine_with(int gpus) {
  CudaInventory inventory;
  for (int ordinal = 0; ordinal < gpus; ++ordinal) {
    CudaDeviceFacts facts;
    facts.ordinal = ordinal;
    facts.name = "GPU";
    inventory.devices.push_back(facts);
  }
  if (gpus == 0) inventory.failure = "no driver is loaded";
  return inventory;
}

RunConfig with_device(DeviceKind kind, int world = 1) {
  RunConfig config;
  config.device = kind;
  config.world = world;
  return config;
}

DeviceChoice choose(const RunConfig& config, const CudaInventory& inventory, int num_host_ranks) {
  return choose_device(config, inventory, {}, num_host_ranks);
}

TEST(DeviceChoice, IsAGpuForEachRankWhereThereAreSome) {
  for (const DeviceKind kind : {DeviceKind::automatic, DeviceKind::gpu}) {
    const DeviceChoice choice = choose(with_device(kind), machine_with(2), 1);
    ASSERT_EQ(choice.gpus.size(), 1u);
    EXPECT_EQ(choice.gpus[0].ordinal, 0);
    EXPECT_EQ(choice.warning, "");
  }
}

TEST(DeviceChoice, IsTheHostWithoutAWordWhereThereIsNoGpu) {
  const DeviceChoice choice = choose(with_device(DeviceKind::automatic), machine_with(0), 1);
  EXPECT_FALSE(choice.uses_gpus());
  EXPECT_EQ(choice.warning, "");
}

TEST(DeviceChoice, IsTheHostWhereTheConfigSaysSo) {
  EXPECT_FALSE(choose(with_device(DeviceKind::cpu), machine_with(2), 1).uses_gpus());
  RunConfig reference = with_device(DeviceKind::automatic);
  reference.kernels = KernelsKind::ref;
  EXPECT_FALSE(choose(reference, machine_with(2), 1).uses_gpus());
}

TEST(DeviceChoice, RefusesAGpuThatIsNotThereAndSaysWhy) {
  EXPECT_THAT([] { choose(with_device(DeviceKind::gpu), machine_with(0), 1); },
              ThrowsMessage<ConfigError>(
                  AllOf(HasSubstr("no driver is loaded"), HasSubstr("device: cpu"))));
}

TEST(DeviceChoice, RefusesAGpuOnAMachineThatHasNone) {
  const CudaInventory here = read_cuda_devices();
  if (!here.devices.empty()) GTEST_SKIP() << "this machine has a GPU";
  EXPECT_NE(here.failure, "");
  EXPECT_THAT([&] { choose(with_device(DeviceKind::gpu), here, 1); },
              ThrowsMessage<ConfigError>(HasSubstr(here.failure)));
}

TEST(DeviceChoice, RefusesMoreRanksThanGpusWithBothNumbers) {
  EXPECT_THAT(
      [] { choose(with_device(DeviceKind::gpu, 4), machine_with(2), 4); },
      ThrowsMessage<ConfigError>(AllOf(HasSubstr("4 ranks on this host"), HasSubstr("2 GPUs"))));
}

TEST(DeviceChoice, IsAGpuForEachOfSeveralRanks) {
  const DeviceChoice choice = choose(with_device(DeviceKind::automatic, 2), machine_with(3), 2);
  EXPECT_EQ(choice.gpus.size(), 2u);
  EXPECT_EQ(choice.warning, "");
}

TEST(DeviceChoice, NeedsNcclForSeveralRanks) {
  const NcclFacts none{true, "", "libnccl.so.2 was not found"};
  EXPECT_THAT([&] { choose_device(with_device(DeviceKind::gpu, 2), machine_with(2), none, 2); },
              ThrowsMessage<ConfigError>(HasSubstr("libnccl.so.2 was not found")));
  const DeviceChoice choice =
      choose_device(with_device(DeviceKind::automatic, 2), machine_with(2), none, 2);
  EXPECT_FALSE(choice.uses_gpus());
  EXPECT_THAT(choice.warning, HasSubstr("the host computes"));
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
