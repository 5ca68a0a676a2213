// load_best_model_at_end, as whoever runs the program sees it.

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "fault/cli/cli_fixture.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class BestModel : public CliOnDrive {
 protected:
  // A rate that grows until steps overshoot: the held-out loss falls and rises.
  std::vector<std::string> best_run(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> overrides{"max_steps=8",
                                       "save_steps=2",
                                       "eval_steps=2",
                                       "save_total_limit=1",
                                       "learning_rate=0.2",
                                       "lr_scheduler_type=constant_with_warmup",
                                       "warmup_steps=10",
                                       "max_grad_norm=0",
                                       "load_best_model_at_end=true",
                                       "greater_is_better=false"};
    overrides.insert(overrides.end(), more.begin(), more.end());
    return train(overrides);
  }
  // By step, of what was saved.
  std::map<std::int64_t, double> losses(const std::string& folder = "out") const {
    std::map<std::int64_t, double> losses;
    std::istringstream lines(text(folder + "/metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      const auto object = nlohmann::json::parse(line);
      if (object.contains("eval_loss") && object["step"] > 0)
        losses[object["step"]] = object["eval_loss"];
    }
    return losses;
  }
  std::int64_t best_step(const std::string& folder = "out") const {
    const auto all = losses(folder);
    return std::ranges::min_element(all, {}, [](const auto& one) { return one.second; })->first;
  }
  static std::string checkpoint(std::int64_t step) { return "checkpoint-" + std::to_string(step); }
  std::string weights_of(const std::string& folder) const {
    return text(folder + "/model.safetensors");
  }
};

TEST_F(BestModel, IsKeptExportedAndTold) {
  const ProcessResult result = run(best_run());
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::int64_t best = best_step();
  ASSERT_LT(best, 8) << "or the last is the best";
  EXPECT_THAT(result.out, AllOf(HasSubstr("the last and the best are kept"),
                                HasSubstr("best     step " + std::to_string(best) + ": held-out"),
                                HasSubstr("after the last step, 8, it is "),
                                HasSubstr("out/export: "), HasSubstr("the best checkpoint's")));
  const ProcessResult listed = run({"checkpoint", "list", path("out")});
  EXPECT_THAT(listed.out, AllOf(HasSubstr(checkpoint(best)), HasSubstr("(best)"),
                                HasSubstr("checkpoint-8"), HasSubstr("held-out loss")));
  EXPECT_EQ(std::ranges::count(listed.out, '\n'), 2);

  const std::string one = path("out/" + checkpoint(best)).string();
  ASSERT_EQ(run({"checkpoint", "export", one, path("named")}).exit_code, 0);
  ASSERT_EQ(run({"checkpoint", "export", "--best", path("out"), path("found")}).exit_code, 0);
  EXPECT_EQ(weights_of("named"), weights_of("out/export"));
  EXPECT_EQ(weights_of("found"), weights_of("out/export"));
  EXPECT_THAT(text("found/README.md"), HasSubstr("after step " + std::to_string(best)));
}

TEST_F(BestModel, IsThatOfTheWholeRunWhereItWasStoppedBetween) {
  ASSERT_EQ(run(best_run()).exit_code, 0);
  ASSERT_EQ(run(best_run({"max_steps=4", "output_dir=" + path("two").string()})).exit_code, 0);
  fs::remove_all(path("two/export"));
  ASSERT_EQ(run(best_run({"resume_from_checkpoint=true", "output_dir=" + path("two").string()}))
                .exit_code,
            0);
  EXPECT_EQ(best_step("two"), best_step());
  EXPECT_EQ(names_in("two"), names_in("out"));
  EXPECT_EQ(weights_of("two/export"), weights_of("out/export"));
}

TEST_F(BestModel, ThatIsDamagedIsMissedAndTheLastWeightsAreThere) {
  ASSERT_EQ(run(best_run()).exit_code, 0);
  damage("out/" + checkpoint(best_step()) + "/00000-master.bin");
  fs::remove_all(path("out/export"));
  const ProcessResult again = run(best_run({"resume_from_checkpoint=true"}));
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_THAT(again.err, AllOf(HasSubstr("the best checkpoint's weights could not be exported"),
                               HasSubstr(checkpoint(best_step()))));
  ASSERT_EQ(run({"checkpoint", "export", path("out/checkpoint-8"), path("last")}).exit_code, 0);
  EXPECT_EQ(weights_of("out/export"), weights_of("last"));
}

TEST_F(BestModel, IsNotLookedForWhereNothingWasEvaluated) {
  ASSERT_EQ(run(train({"max_steps=2", "save_steps=2", "eval_strategy=no"})).exit_code, 0);
  const ProcessResult result = run({"checkpoint", "export", "--best", path("out"), path("found")});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("has no checkpoint whose held-out loss was taken"));
  EXPECT_THAT(run({"checkpoint", "list", path("out")}).out, Not(HasSubstr("held-out")));
}

// A run that others want to end leaves its checkpoint.
TEST_F(BestModel, IsNotExportedByARunThatIsStopped) {
  Process process(path(""), command(best_run({"max_steps=1000000"})));
  ASSERT_TRUE(process.wait_for_output("step 3/")) << process.err();
  process.kill(SIGTERM);
  const ProcessResult result = process.wait();
  EXPECT_EQ(result.exit_code, 128 + SIGTERM) << result.err;
  EXPECT_THAT(result.out, AllOf(Not(HasSubstr("best     ")), Not(HasSubstr("exported"))));
}

}  // namespace
}  // namespace strata
