// Exports that cannot be written, and what is left to go on from.

#include <sys/resource.h>

#include <algorithm>

#include "fault/cli/cli_fixture.hpp"
#include "support/unhurried.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

TEST_F(CliOnDrive, KeepsEveryStepDurableUntilTheExportStands) {
  std::string steps;
  std::vector<std::string> arguments;
  // The export needs the model's config once more: taken away while the run is at its steps.
  const auto run_without_config = [&](double num_steps) {
    fs::remove_all(path("out"));
    steps = std::to_string(static_cast<int>(num_steps));
    arguments = train({"max_steps=" + steps, "save_strategy=\"no\"", "eval_strategy=no",
                       "offload.versioned=true", "resume_from_checkpoint=true"});
    Process process(path(""), command(arguments));
    EXPECT_TRUE(process.wait_for_output("step 2/")) << process.err();
    fs::rename(path("model/config.json"), path("model/away.json"));
    const ProcessResult result = process.wait();
    fs::rename(path("model/away.json"), path("model/config.json"));
    return result;
  };
  const ProcessResult failed = unhurried(
      200, run_without_config, [](const ProcessResult& late) { return late.exit_code == 0; });
  EXPECT_EQ(failed.exit_code, exit_failure);
  EXPECT_THAT(failed.out, HasSubstr("step " + steps + "/" + steps));
  EXPECT_THAT(failed.err, HasSubstr("config.json"));
  EXPECT_THAT(names_in("out"), Not(Contains(StartsWith("export"))));
  EXPECT_THAT(names_in("nvme"), Contains(StartsWith("strata-state-")));

  const ProcessResult again = run(arguments);
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("exported " + path("out/export").string()));
  EXPECT_TRUE(logged_steps(text("out/metrics.jsonl")).contains(std::stoi(steps)));
  EXPECT_THAT(names_in("nvme"), IsEmpty());
  EXPECT_EQ(run({"eval", path("run.yaml"), "model_name_or_path=" + path("out/export").string()})
                .exit_code,
            0);
}

TEST_F(CliTest, LeavesNothingOfAnExportThatFindsNoRoom) {
  ASSERT_EQ(run({"make-model", path("model"), "--preset", "tiny"}).exit_code, 0);
  const ProcessResult result = run({"export", "--model", path("model"), "--output", path("out")},
                                   {.limits = {{RLIMIT_FSIZE, 64 << 10}}, .environment = {}});
  EXPECT_EQ(result.exit_code, exit_failure);
  EXPECT_THAT(result.err, AllOf(HasSubstr("model.safetensors"), HasSubstr("bytes) free")));
  const std::vector<std::string> names = names_in("");
  EXPECT_TRUE(std::ranges::none_of(names, [](const std::string& name) {
    return name.starts_with("out.") || name == "out";
  })) << ::testing::PrintToString(names);
}

}  // namespace
}  // namespace strata
