// bench_gpu() on the host standing in: what it measures, what it writes, what it refuses. How fast
// this machine is is nobody's test.

#include "strata/measure/gpu_bench.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "healthy_machine.hpp"
#include "src/measure/bench_accelerator.hpp"
#include "src/measure/known_accelerators.hpp"
#include "src/measure/link_bench.hpp"
#include "strata/core/error.hpp"
#include "strata/device/cuda_devices.hpp"

namespace strata {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::SizeIs;

GpuBenchOptions tiny() {
  GpuBenchOptions options;
  options.gpu = std::nullopt;
  options.num_threads = 1;
  options.seconds = 0.001;
  options.repeats = 2;
  GpuBenchSizes& sizes = options.sizes;
  sizes.tokens = sizes.pass_rows = sizes.logit_rows = 8;
  sizes.hidden = 128;
  sizes.kv = sizes.vocabulary = 32;
  sizes.ffn = 64;
  sizes.squares = {16, 32};
  sizes.f32_square = 16;
  sizes.attention = {{16, 4, 2, 64}};
  sizes.parameters = 8192;
  sizes.copy_bytes = 1 << 20;
  return options;
}

const GpuReport& measured() {
  static const GpuReport report = bench_gpu(tiny());
  return report;
}

void expect_times(const Samples& seconds, const std::string& what) {
  EXPECT_THAT(seconds.values, AllOf(SizeIs(2), Each(Gt(0)))) << what;
}

TEST(GpuBench, MeasuresEachPartAsOftenAsAsked) {
  const GpuReport& report = measured();
  for (const Samples* rates :
       {&report.links.h2d, &report.links.d2h, &report.links.both, &report.memory_bytes_per_s,
        &report.launch_seconds, &report.matmul_launch_seconds})
    expect_times(*rates, "copies and launches");
  for (const MeasuredProduct& p : report.matmul) expect_times(p.seconds, p.pass);
  for (const MeasuredAttention& a : report.attention) {
    expect_times(a.forward_seconds, "attention forward");
    expect_times(a.backward_seconds, "attention backward");
  }
  for (const MeasuredUpdate& u : report.adam) expect_times(u.seconds, u.layout);
  for (const MeasuredPass& p : report.passes) expect_times(p.seconds, p.pass);
}

TEST(GpuBench, CoversALayerBothDtypesAndAllLayouts) {
  const GpuReport& report = measured();
  std::set<std::string> passes, dtypes, layouts;
  for (const MeasuredProduct& p : report.matmul) {
    passes.insert(p.pass);
    dtypes.insert(p.dtype);
    EXPECT_EQ(p.flops, 2.0 * static_cast<double>(p.m * p.n * p.k));
  }
  for (const MeasuredUpdate& u : report.adam) layouts.insert(u.layout);
  EXPECT_THAT(passes, ElementsAre("backward input", "backward weight", "forward"));
  EXPECT_THAT(dtypes, ElementsAre("bf16", "f32"));
  EXPECT_THAT(layouts, AllOf(SizeIs(12), Contains("bf16/split/q8"), Contains("f32/f32/f32")));
  EXPECT_EQ(report.kernels, "cpu");
}

TEST(GpuBench, CountsTheCausalHalfOfAttention) {
  const MeasuredAttention& attention = measured().attention.front();
  EXPECT_EQ(attention.forward_flops, 2.0 * 16 * 16 * 4 * 64);
  EXPECT_EQ(attention.backward_flops, 5.0 * 16 * 16 * 4 * 64);
}

TEST(GpuBench, CountsBytesAsItsOperandsHaveThem) {
  const GpuReport& report = measured();
  EXPECT_EQ(report.adam.front().bytes, (4 + 2 * 12 + 2) * 8192.0) << report.adam.front().layout;
  std::map<std::string, double> bytes;
  for (const MeasuredPass& pass : report.passes) {
    EXPECT_GT(pass.bytes, 0) << pass.pass;
    bytes[pass.pass] = pass.bytes;
  }
  EXPECT_EQ(bytes.at("add"), 3 * 2 * 8 * 128);
  EXPECT_EQ(bytes.at("swiglu backward"), 5 * 2 * 8 * 64);
}

TEST(GpuBench, TakesTheBestSquareForItsReference) {
  GpuReport report;
  const auto product = [](const char* pass, const char* dtype, std::uint64_t n, double seconds) {
    return MeasuredProduct{pass, dtype, 8, n, 8, 1000, Samples{{seconds}}};
  };
  EXPECT_EQ(report.peak_matmul_flops_per_s(), 0);
  report.matmul = {product("forward", "bf16", 8, 4), product("forward", "bf16", 8, 2),
                   product("forward", "bf16", 9, 1), product("forward", "f32", 8, 1),
                   product("backward input", "bf16", 8, 1)};
  EXPECT_EQ(report.peak_matmul_flops_per_s(), 500);
}

TEST(GpuBench, WritesTheKeysThatProgramsRead) {
  const json report = json::parse(to_json(measured()));
  EXPECT_EQ(report.at("format"), "strata-gpu-bench");
  for (const char* key : {"name", "compute", "memory_bytes", "sms"})
    EXPECT_TRUE(report.at("device").contains(key)) << key;
  const auto positive = [](const json& of, const std::vector<const char*>& keys) {
    for (const char* key : keys) EXPECT_GT(of.at(key).get<double>(), 0) << key;
  };
  positive(report.at("device"), {"memory_bytes", "usable_bytes"});
  positive(report.at("links"), {"h2d_bytes_per_s", "d2h_bytes_per_s", "both_bytes_per_s"});
  positive(report, {"memory_bytes_per_s", "peak_matmul_flops_per_s", "launch_seconds",
                    "matmul_launch_seconds"});
  for (const json& product : report.at("matmul")) positive(product, {"m", "n", "k", "flops_per_s"});
  for (const json& attention : report.at("attention"))
    positive(attention, {"tokens", "heads", "kv_heads", "head_dim", "forward_flops_per_s",
                         "backward_flops_per_s"});
  for (const json& update : report.at("adam")) positive(update, {"params_per_s", "bytes_per_s"});
  for (const json& pass : report.at("passes")) positive(pass, {"bytes_per_s"});
  EXPECT_EQ(report.at("adam").at(0).at("layout"), "f32/f32/f32");
}

TEST(GpuBench, IsReadBackAsItWasWritten) {
  const std::string text = to_json(measured());
  EXPECT_TRUE(is_gpu_report(text));
  EXPECT_EQ(to_json(gpu_report_from_json(text, "gpu.json")), text);
}

TEST(GpuBench, RefusesReportsOfOtherKindsAndSpoiltOnes) {
  EXPECT_FALSE(is_gpu_report("{\"format\": \"strata-adam-bench\"}"));
  EXPECT_FALSE(is_gpu_report("no JSON"));
  json report = json::parse(to_json(measured()));
  const auto refused = [](const json& document) {
    EXPECT_THROW(gpu_report_from_json(document.dump(), "gpu.json"), ConfigError);
  };
  json other = report;
  other["schema_version"] = GpuReport::schema_version + 1;
  refused(other);
  other = report;
  other["matmul"][0].erase("k");
  refused(other);
  other = report;
  other["device"]["colour"] = "green";
  refused(other);
}

TEST(GpuBench, IsComparedFigureByFigure) {
  GpuReport a = measured(), b = a;
  for (double& seconds : b.adam[0].seconds.values) seconds /= 1000;
  b.passes.erase(b.passes.begin());
  a.attention.clear();
  const std::string text = compare_gpu_reports(a, b);
  EXPECT_THAT(text, AllOf(HasSubstr("B is faster"), HasSubstr("1000.00x"), HasSubstr("only in A"),
                          HasSubstr("only in B"), HasSubstr("within the noise")));
  EXPECT_THAT(compare_gpu_reports(b, a), HasSubstr("B is slower"));
}

TEST(GpuBench, ShowsATableOfEachPart) {
  EXPECT_THAT(
      format_gpu_report(measured()),
      AllOf(HasSubstr("host to device, pinned"), HasSubstr("of the best square"),
            HasSubstr("attention, causal"), HasSubstr("bf16/split/q8"), HasSubstr("cross-entropy"),
            HasSubstr("addition of one element"), HasSubstr("note: this is the host standing in")));
}

TEST(GpuBench, TellsHowFarItIsAndEndsEarlyWhenAsked) {
  GpuBenchOptions options = tiny();
  std::vector<double> done;
  options.watch.progress = [&](const std::string&, double share) { done.push_back(share); };
  bench_gpu(options);
  EXPECT_THAT(done, Each(AllOf(Ge(0), Le(1))));
  EXPECT_TRUE(std::ranges::is_sorted(done));
  EXPECT_GT(done.back(), 0.9);
  const std::atomic<bool> stop{true};
  options.watch.stop = &stop;
  EXPECT_THROW(bench_gpu(options), Interrupted);
}

TEST(GpuBench, RefusesOptionsOutOfRange) {
  for (const auto spoil :
       {+[](GpuBenchOptions& o) { o.seconds = 0; },
        +[](GpuBenchOptions& o) { o.seconds = std::nan(""); },
        +[](GpuBenchOptions& o) { o.repeats = 0; }, +[](GpuBenchOptions& o) { o.gpu = 1000; }}) {
    GpuBenchOptions options = tiny();
    spoil(options);
    EXPECT_THROW(bench_gpu(options), ConfigError);
  }
}

TEST(BenchAccelerator, SaysWhyThereIsNoGpu) {
  CudaInventory inventory = healthy_cuda();
  EXPECT_EQ(gpu_facts(inventory, 0).name, "NVIDIA H100 80GB HBM3");
  const auto refusal = [&](int ordinal) -> std::string {
    try {
      gpu_facts(inventory, ordinal);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refusal(1), HasSubstr("there is no GPU 1: this machine has 1"));
  EXPECT_THAT(refusal(-1), HasSubstr("there is no GPU -1"));
  inventory.devices.clear();
  inventory.failure = "the driver is missing";
  EXPECT_THAT(refusal(0), HasSubstr("the driver is missing"));
}

TEST(LinkBench, IsNoFasterThanTheLink) {
  const auto device =
      make_host_device({.host_to_device_bytes_per_s = 200e6, .device_to_host_bytes_per_s = 100e6});
  BenchProgress progress({});
  const LinkRates rates = bench_link(*device, 1 << 20, 1, progress);
  EXPECT_LE(rates.up.median(), 200e6);
  EXPECT_LE(rates.down.median(), 100e6);
  EXPECT_LE(rates.both.median(), 200e6) << "twice what the slower one takes";
  EXPECT_GT(rates.profile().both_bytes_per_s, 0);
}

TEST(KnownPeak, IsThatOfTheNameAlone) {
  EXPECT_EQ(known_peak("NVIDIA H200")->flops_per_s, 989e12);
  EXPECT_EQ(known_peak("NVIDIA A100-SXM4-80GB")->flops_per_s, 312e12);
  EXPECT_THAT(std::string(known_peak("NVIDIA GeForce RTX 4090")->source), HasSubstr("Ada"));
  EXPECT_FALSE(known_peak("NVIDIA H20"));
  EXPECT_FALSE(known_peak("NVIDIA GeForce RTX 3090 Ti"));
  EXPECT_FALSE(known_peak(""));
}

}  // namespace
}  // namespace strata
