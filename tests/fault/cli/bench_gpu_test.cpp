// `strata bench gpu`: a short measurement of the host standing in for a GPU.

#include <nlohmann/json.hpp>

#include "fault/cli/cli_fixture.hpp"

namespace strata {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

class CliBenchGpu : public CliTest {
 protected:
  ProcessResult bench(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments{"bench", "gpu", "--repeats", "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }
  void expect_refused(const std::vector<std::string>& more, const char* message) const {
    const ProcessResult result = bench(more);
    EXPECT_EQ(result.exit_code, 2) << result.out;
    EXPECT_THAT(result.err, HasSubstr(message));
  }
};

TEST_F(CliBenchGpu, PrintsATableAndWritesTheReport) {
  const ProcessResult result =
      bench({"--device", "cpu", "--threads", "1", "--seconds", "0.05", "--json", path("gpu.json")});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("attention, causal"), HasSubstr("TFLOP/s"),
                                HasSubstr("host standing in"), HasSubstr("wrote ")));
  const json report = json::parse(text("gpu.json"));
  EXPECT_EQ(report.at("format"), "strata-gpu-bench");
  EXPECT_EQ(report.at("device").at("name"), "host");
  EXPECT_GT(report.at("peak_matmul_flops_per_s"), 0);
}

TEST_F(CliBenchGpu, RefusesWhatItCannotMeasureOrWrite) {
  expect_refused({"--device", "1000"}, "there is no GPU");
  expect_refused({"--device", "abacus"}, "--device abacus: auto, gpu, cpu");
  expect_refused({"--device", "cpu", "--seconds", "0"}, "--seconds 0");
  expect_refused({"--device", "cpu", "--json", path("absent/gpu.json")}, "is no folder");
}

}  // namespace
}  // namespace strata
