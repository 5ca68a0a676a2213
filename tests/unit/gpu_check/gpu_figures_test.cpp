#include "gpu_check/gpu_figures.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace strata {
namespace {

using ::testing::HasSubstr;

CheckJson report() {
  return CheckJson::parse(R"({
    "device": {"name": "a GPU", "memory_bytes": 150000000000},
    "links": {"h2d_bytes_per_s": 55e9, "d2h_bytes_per_s": 50e9, "both_bytes_per_s": 95.5e9},
    "memory_bytes_per_s": 4.2e12, "peak_matmul_flops_per_s": 8e14,
    "matmul": [{"dtype": "bf16", "m": 8, "n": 8, "k": 8, "flops_per_s": 8e14},
               {"dtype": "bf16", "m": 8, "n": 4, "k": 8, "flops_per_s": 4e14},
               {"dtype": "f32", "m": 8, "n": 8, "k": 8, "flops_per_s": 1e13}],
    "attention": [
      {"tokens": 2048, "heads": 32, "kv_heads": 8, "head_dim": 128, "forward_flops_per_s": 2e14,
       "backward_flops_per_s": 1e14},
      {"tokens": 8192, "heads": 32, "kv_heads": 8, "head_dim": 128, "forward_flops_per_s": 4e14,
       "backward_flops_per_s": 2e14}],
    "adam": [{"layout": "bf16/f32/f32", "params_per_s": 1.5e11, "bytes_per_s": 3.9e12}]})");
}

TEST(GpuFigures, MakesARowOfEachKind) {
  const auto rows = gpu_bench_rows(report().dump());
  ASSERT_EQ(rows.size(), gpu_bench_parts().size());
  EXPECT_THAT(rows[0].told, HasSubstr("H2D 55.0 GB/s, D2H 50.0 GB/s, both at once 95.5 GB/s"));
  EXPECT_THAT(rows[1].told, HasSubstr("best 800.0 TFLOP/s in bf16"));
  EXPECT_THAT(rows[1].told, HasSubstr("the slowest of 2 products reaches 400.0 (50%)"));
  EXPECT_THAT(rows[2].told, HasSubstr("heads of 128: forward 400.0 TFLOP/s (50% of the best "
                                      "product), backward 200.0 (25%)"));
  EXPECT_THAT(rows[3].told, HasSubstr("bf16/f32/f32: 150.0 Gparam/s, 3900.0 GB/s"));
  EXPECT_EQ(rows[1].figures["matmul"].size(), 3u);
}

TEST(GpuFigures, RefusesReportsThatLackAFigure) {
  CheckJson lacks = report();
  lacks["links"].erase("both_bytes_per_s");
  EXPECT_THROW(gpu_bench_rows(lacks.dump()), std::exception);
  CheckJson zero = report();
  zero["peak_matmul_flops_per_s"] = 0;
  EXPECT_THROW(gpu_bench_rows(zero.dump()), std::exception);
  EXPECT_THROW(gpu_bench_rows(report().dump().substr(0, 200)), std::exception);
}

TEST(GpuFigures, ReadsAProfileWithAndWithoutDrives) {
  CheckJson profile{{"values", CheckJson::object()}};
  const auto set = [&](const char* field, double value) {
    profile["values"][field] = {{"value", value}, {"source", "measured"}};
  };
  set("accelerator.peak_flops_per_s", 8e14);
  EXPECT_EQ(profile_value(profile.dump(), "accelerator.peak_flops_per_s"), 8e14);
  EXPECT_EQ(profile_value(profile.dump(), "drives[0].bytes"), 0);
  EXPECT_THAT(profile_row("profile", profile.dump()).told, Not(HasSubstr("NVMe")));
  set("drives[0].bytes", 1e12);
  set("drives[0].read_bytes_per_s", 7e9);
  EXPECT_THAT(profile_row("profile", profile.dump()).told, HasSubstr("NVMe read 7.0 GB/s"));
}

}  // namespace
}  // namespace strata
