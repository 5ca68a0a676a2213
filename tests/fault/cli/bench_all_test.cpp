// `strata bench all`: a tiny measurement of the machine that the test runs on.

#include <nlohmann/json.hpp>

#include "fault/cli/cli_fixture.hpp"

namespace strata {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

class CliBenchAll : public CliTest {
 protected:
  std::vector<std::string> tiny(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments{
        "bench",     "all", "--device",           "cpu", "--gpu-limit", "64MiB", "--widths", "64",
        "--tokens",  "16",  "--attention-tokens", "32",  "--count",     "8192",  "--size",   "1MiB",
        "--repeats", "1",   "--threads",          "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
};

TEST_F(CliBenchAll, PrintsATableAndWritesTheProfile) {
  const ProcessResult result = run(tiny(
      {"--write-profile", path("machine.yaml"), "--json", path("machine.json"), "--ranks", "2"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("2 ranks"), HasSubstr("link.up_bytes_per_s"),
                                HasSubstr("GB/s"), HasSubstr("wrote ")));
  EXPECT_THAT(text("machine.yaml"), AllOf(HasSubstr("ranks: 2"), HasSubstr("updates:"),
                                          HasSubstr("comm:"), HasSubstr("by strata bench all: ")));
}

TEST_F(CliBenchAll, WritesEveryRateForPrograms) {
  ASSERT_EQ(run(tiny({"--json", path("machine.json")})).exit_code, 0);
  const json document = json::parse(text("machine.json"));
  EXPECT_EQ(document.at("ranks"), 1);
  EXPECT_GT(document.at("values").size(), 20u);
  for (const auto& [key, value] : document.at("values").items()) {
    EXPECT_GT(value.at("value").get<double>(), 0) << key;
    EXPECT_THAT(value.at("source").get<std::string>(), HasSubstr("measured 20")) << key;
  }
}

TEST_F(CliBenchAll, RefusesWhatItCannotWriteOrMeasureBeforeItMeasures) {
  const auto refused = [&](const std::vector<std::string>& more, const char* message) {
    const ProcessResult result = run(tiny(more));
    EXPECT_EQ(result.exit_code, 2) << result.out;
    EXPECT_THAT(result.err, HasSubstr(message));
  };
  refused({"--write-profile", path("absent/machine.yaml")}, "is no folder");
  refused({"--nvme-path", path("absent")}, "absent");
  refused({"--ranks", "0"}, "--ranks 0");
  refused({"--count", "0"}, "--count");
  refused({"--gpu-limit", "0"}, "--gpu-limit");
}

TEST_F(CliBenchAll, RefusesADeviceThatIsNotThere) {
  for (const auto& [device, message] : {std::pair("1000", "there is no GPU"),
                                        std::pair("abacus", "--device abacus: auto, gpu, cpu")}) {
    const ProcessResult result = run({"bench", "all", "--device", device});
    EXPECT_EQ(result.exit_code, 2) << result.out;
    EXPECT_THAT(result.err, HasSubstr(message));
  }
}

}  // namespace
}  // namespace strata
