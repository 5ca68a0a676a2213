#include "strata/measure/machine_bench.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "drive_directory.hpp"
#include "healthy_machine.hpp"
#include "src/measure/compute_bench.hpp"
#include "src/measure/machine_bench_gpus.hpp"
#include "strata/core/error.hpp"
#include "strata/topology/topology.hpp"

namespace strata {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

MachineBenchOptions tiny_machine_bench() {
  MachineBenchOptions options;
  options.command = "a test";
  options.date = "2026-01-02";
  options.num_threads = 1;
  options.repeats = 1;
  options.gpu_limit = 64 << 20;
  options.widths = {64, 16};
  options.tokens = 16;
  options.attention_tokens = 32;
  options.parameters = 8192;
  options.array_bytes = 1 << 20;
  return options;
}

void expect_rate(double rate, const char* what) {
  EXPECT_TRUE(std::isfinite(rate) && rate > 0) << what << " " << rate;
}

void expect_rates(const std::vector<MatmulRate>& rates) {
  ASSERT_EQ(rates.size(), 4u);
  double before = 0;
  for (const MatmulRate& rate : rates) {
    expect_rate(rate.flops_per_s, "product");
    EXPECT_GT(rate.flops, before);
    before = rate.flops;
  }
}

TEST(MachineBench, FillsEveryPartOfAProfile) {
  MachineBenchOptions options = tiny_machine_bench();
  options.ranks = 2;
  const MachineProfile machine = bench_machine(options);
  EXPECT_FALSE(machine.name.empty());
  EXPECT_EQ(machine.ranks, 2);
  EXPECT_EQ(machine.accelerator.memory_bytes, 32u << 20);
  expect_rates(machine.accelerator.bf16);
  expect_rates(machine.accelerator.f32);
  expect_rate(machine.accelerator.peak_flops_per_s, "peak");
  expect_rate(machine.accelerator.memory_bytes_per_s, "device memory");
  expect_rate(machine.accelerator.attention_efficiency, "attention");
  expect_rate(machine.accelerator.seconds_per_call, "call");
  expect_rate(machine.link.up_bytes_per_s, "up");
  expect_rate(machine.link.down_bytes_per_s, "down");
  expect_rate(machine.link.both_bytes_per_s, "both");
  EXPECT_LE(machine.link.both_bytes_per_s,
            machine.link.up_bytes_per_s + machine.link.down_bytes_per_s);
  EXPECT_GT(machine.host.memory_bytes, 0u);
  EXPECT_EQ(machine.host.cores, read_topology().usable_cores);
  expect_rate(machine.host.memory_bytes_per_s, "memory");
  EXPECT_EQ(machine.host.updates.size(), 12u);
  for (const auto& [layout, update] : machine.host.updates)
    expect_rate(update.params_per_s, layout.c_str());
  expect_rate(machine.comm.gather_bytes_per_s, "gather");
  expect_rate(machine.comm.reduce_bytes_per_s, "reduce");
  expect_rate(machine.comm.seconds_per_call, "barrier");
  EXPECT_THAT(machine.sources.at("link.up_bytes_per_s"),
              HasSubstr("measured 2026-01-02 by a test: "));
}

using MachineBenchOnADrive = OnADrive;

TEST_F(MachineBenchOnADrive, HasEveryRateOfADriveWithItsSource) {
  MachineBenchOptions options = tiny_machine_bench();
  options.nvme_paths = {directory_.path()};
  options.nvme_bytes = 128 << 20;
  options.nvme_seconds = 0.02;
  const MachineProfile machine = bench_machine(options);
  ASSERT_EQ(machine.drives.size(), 1u);
  const DriveProfile& drive = machine.drives[0];
  expect_rate(drive.read_bytes_per_s, "read");
  expect_rate(drive.write_bytes_per_s, "write");
  expect_rate(drive.new_file_bytes_per_s, "new files");
  expect_rate(drive.mixed_bytes_per_s, "mixed");
  EXPECT_EQ(drive.new_file_bytes_per_s,
            std::stod(fmt::format("{:.3e}", drive.new_file_bytes_per_s)))
      << "four digits";
  EXPECT_THAT(machine.sources.at("drives[0].new_file_bytes_per_s"),
              AllOf(HasSubstr("measured 2026-01-02 by a test: " + directory_.path()),
                    HasSubstr("into new files")));
  EXPECT_TRUE(std::filesystem::is_empty(directory_.path()));
}

TEST(MachineBench, GivesEachRankItsShareOfTheHostThatStandsIn) {
  MachineBenchOptions options = tiny_machine_bench();
  options.ranks = 2;
  const MachineProfile machine = bench_machine(options);
  const auto& rates = machine.accelerator.bf16;
  EXPECT_EQ(machine.accelerator.peak_flops_per_s,
            std::ranges::max(rates, {}, &MatmulRate::flops_per_s).flops_per_s);
  for (const char* key : {"bf16", "f32", "memory_bytes_per_s"})
    EXPECT_THAT(machine.sources.at(std::string("accelerator.") + key),
                HasSubstr("; one of 2 ranks has its share"));
}

// GPUs by their facts; what computes for them is this host, whose memory is theirs.
BenchGpus made_up_gpus(const std::vector<const char*>& names, std::uint64_t memory_bytes) {
  std::vector<CudaDeviceFacts> gpus;
  for (const char* name : names) {
    gpus.push_back(healthy_cuda().devices.front());
    gpus.back().name = name;
  }
  return {gpus, BenchAccelerator(make_host_device({.memory_bytes = memory_bytes}), {},
                                 make_ref_kernels())};
}

MachineBenchOptions tiny_gpu() {
  MachineBenchOptions options = tiny_machine_bench();
  options.gpu = 0;
  options.gpu_limit.reset();
  return options;
}

TEST(MachineBench, OfAGpuKeepsTheHostsMemoryForTheHost) {
  const MachineProfile machine =
      bench_machine_with(tiny_gpu(), made_up_gpus({"NVIDIA H200"}, 500'123'456));
  EXPECT_EQ(machine.ranks, 1);
  EXPECT_EQ(machine.accelerator.name, "NVIDIA H200");
  EXPECT_THAT(machine.name, HasSubstr("1 x NVIDIA H200"));
  EXPECT_EQ(machine.accelerator.memory_bytes, 500'000'000u);
  EXPECT_GT(machine.host.memory_bytes, read_topology().available_memory_bytes / 2);
  EXPECT_EQ(machine.accelerator.peak_flops_per_s, 989e12);
  EXPECT_THAT(machine.sources.at("accelerator.peak_flops_per_s"), HasSubstr("data sheet"));
  expect_rates(machine.accelerator.bf16);
  expect_rates(machine.accelerator.f32);
  expect_rate(machine.accelerator.memory_bytes_per_s, "device memory");
  expect_rate(machine.accelerator.attention_efficiency, "attention");
  expect_rate(machine.accelerator.seconds_per_call, "call");
  expect_rate(machine.link.both_bytes_per_s, "both");
  EXPECT_THAT(machine.sources.at("accelerator.memory_bytes_per_s"), HasSubstr("device 0"));
  EXPECT_THAT(machine.sources.at("link.up_bytes_per_s"), HasSubstr("device 0"));
  EXPECT_EQ(machine.host.updates.size(), 12u);
  EXPECT_EQ(machine.comm.gather_bytes_per_s, 0);
}

TEST(MachineBench, OfSeveralGpusHasARankForEachAndAssumesTheirCollectives) {
  MachineBenchOptions options = tiny_gpu();
  options.gpu_limit = 300'000'000;
  const MachineProfile machine =
      bench_machine_with(options, made_up_gpus({"A GPU", "A GPU", "A GPU"}, 500'000'000));
  EXPECT_EQ(machine.ranks, 3);
  EXPECT_EQ(machine.accelerator.memory_bytes, 300'000'000u) << "of each";
  EXPECT_EQ(machine.comm.gather_bytes_per_s,
            std::min(machine.link.up_bytes_per_s, machine.link.down_bytes_per_s));
  for (const char* key : {"gather_bytes_per_s", "reduce_bytes_per_s", "seconds_per_call"})
    EXPECT_THAT(machine.sources.at(std::string("comm.") + key), ::testing::StartsWith("assumed"));
  EXPECT_EQ(machine.accelerator.peak_flops_per_s,
            std::ranges::max(machine.accelerator.bf16, {}, &MatmulRate::flops_per_s).flops_per_s)
      << "nobody knows this one";
}

TEST(MachineBench, OfGpusRefusesMoreRanksAndMemoryThanThereAre) {
  MachineBenchOptions options = tiny_gpu();
  options.ranks = 2;
  EXPECT_THROW(bench_machine_with(options, made_up_gpus({"A GPU"}, 500'000'000)), ConfigError);
  options.ranks = 1;
  options.gpu_limit = 600'000'000;
  EXPECT_THROW(bench_machine_with(options, made_up_gpus({"A GPU"}, 500'000'000)), ConfigError);
}

TEST(MachineBench, OfAGpuThatIsNotThereSaysSo) {
  MachineBenchOptions options = tiny_machine_bench();
  options.gpu = 1000;
  EXPECT_THROW(bench_machine(options), ConfigError);
}

TEST(MachineBench, OfOneRankMeasuresNoCollectivesAndTellsOfItsProgress) {
  MachineBenchOptions options = tiny_machine_bench();
  double before = 0;
  options.watch.progress = [&](const std::string&, double done) {
    EXPECT_GE(done, before - 1e-12);
    EXPECT_LE(done, 1 + 1e-12);
    before = done;
  };
  const MachineProfile machine = bench_machine(options);
  EXPECT_GT(before, 0.5);
  EXPECT_EQ(machine.comm.gather_bytes_per_s, 0);
  EXPECT_FALSE(machine.sources.contains("comm.gather_bytes_per_s"));
}

TEST(MachineBench, EndsEarlyWhenAsked) {
  MachineBenchOptions options = tiny_machine_bench();
  const std::atomic<bool> stop{true};
  options.watch.stop = &stop;
  EXPECT_THROW(bench_machine(options), Interrupted);
}

TEST(MachineBench, RefusesOptionsOutOfRange) {
  const auto refused = [](auto change) {
    MachineBenchOptions options = tiny_machine_bench();
    change(options);
    EXPECT_THROW(bench_machine(options), ConfigError);
  };
  refused([](MachineBenchOptions& o) { o.widths = {}; });
  refused([](MachineBenchOptions& o) { o.widths = {0}; });
  refused([](MachineBenchOptions& o) { o.ranks = 0; });
  refused([](MachineBenchOptions& o) { o.repeats = 0; });
  refused([](MachineBenchOptions& o) { o.tokens = 0; });
  refused([](MachineBenchOptions& o) { o.gpu_limit = 0; });
  refused([](MachineBenchOptions& o) { o.gpu_limit = std::uint64_t{1} << 60; });
  refused([](MachineBenchOptions& o) { o.nvme_paths = {"/dev/shm/no-such-folder"}; });
}

TEST(ProductSizes, RiseAndAreAllDifferent) {
  const std::vector<std::int64_t> widths{64, 48, 64};
  const std::vector<ProductSize> sizes = product_sizes(widths, 8);
  ASSERT_EQ(sizes.size(), 4u);
  for (std::size_t i = 1; i < sizes.size(); ++i) EXPECT_GT(sizes[i].flops(), sizes[i - 1].flops());
}

TEST(RateAt, LiesBetweenItsNeighboursOverTheLogarithm) {
  const std::vector<MatmulRate> rates{{1e6, 10}, {1e8, 30}};
  EXPECT_EQ(rate_at(rates, 1), 10);
  EXPECT_EQ(rate_at(rates, 1e6), 10);
  EXPECT_NEAR(rate_at(rates, 1e7), 20, 1e-9);
  EXPECT_EQ(rate_at(rates, 1e8), 30);
  EXPECT_EQ(rate_at(rates, 1e20), 30);
}

}  // namespace
}  // namespace strata
