// Keys of the best checkpoint, which go together as transformers has it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "strata/train/checkpoints.hpp"
#include "unit/cli/config_texts.hpp"

namespace strata {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string evaluated = "eval_dataset: a.tok\neval_strategy: steps\n";
const std::string best = evaluated + "load_best_model_at_end: true\n";

TEST(BestModel, IsKeptWhereItIsAskedFor) {
  EXPECT_FALSE(keeps_best(parse("")));
  EXPECT_FALSE(keeps_best(parse("load_best_model_at_end: false\nmetric_for_best_model: null")));
  EXPECT_TRUE(keeps_best(parse(best + "eval_steps: 100")));
  const RunConfig kept = parse(evaluated + "metric_for_best_model: eval_loss");
  EXPECT_TRUE(keeps_best(kept));
  EXPECT_FALSE(kept.load_best_model_at_end);
}

TEST(BestModel, IsKeptBesideTheLastOne) {
  const auto kept = [](const std::string& limit) {
    return checkpoints_kept(parse(best + "eval_steps: 500\nsave_total_limit: " + limit));
  };
  EXPECT_EQ(kept("0"), 0);
  EXPECT_EQ(kept("1"), 2);
  EXPECT_EQ(kept("2"), 2);
  EXPECT_EQ(kept("3"), 3);
  EXPECT_EQ(checkpoints_kept(parse("save_total_limit: 1")), 1);
}

TEST(BestModel, IsTheBestByHeldOutLossAlone) {
  for (const char* name : {"loss", "eval_loss"})
    EXPECT_EQ(parse(best + "eval_steps: 500\nmetric_for_best_model: " + name).metric_for_best_model,
              BestMetric::held_out_loss);
  EXPECT_THAT(error_of(best + "eval_steps: 500\nmetric_for_best_model: accuracy"),
              HasSubstr("'accuracy' is not supported: evaluation takes the loss alone; use loss"));
  EXPECT_EQ(parse(best + "eval_steps: 500\ngreater_is_better: false").warnings.size(), 0u);
  EXPECT_THAT(error_of(best + "eval_steps: 500\ngreater_is_better: true"),
              HasSubstr("the least held-out loss"));
}

TEST(BestModel, NeedsLossesThatCheckpointsTell) {
  EXPECT_THAT(error_of("load_best_model_at_end: true"),
              HasSubstr("load_best_model_at_end needs eval_strategy"));
  EXPECT_THAT(error_of("metric_for_best_model: loss"),
              HasSubstr("metric_for_best_model needs eval_strategy"));
  EXPECT_THAT(error_of(best + "eval_steps: 500\nsave_only_model: true"),
              HasSubstr("load_best_model_at_end contradicts save_only_model: true"));
}

TEST(BestModel, NeedsAnEvaluationBeforeEachSave) {
  const auto alike = HasSubstr("needs save_strategy and eval_strategy to be alike");
  EXPECT_THAT(error_of(best + "eval_steps: 500\nsave_strategy: epoch"), alike);
  EXPECT_THAT(error_of(best + "eval_steps: 500\nsave_strategy: \"no\""), alike);
  const std::string epochs =
      "eval_dataset: a.tok\neval_strategy: epoch\nload_best_model_at_end: true\n";
  EXPECT_THAT(error_of(epochs), alike);
  EXPECT_TRUE(keeps_best(parse(epochs + "save_strategy: epoch")));
  EXPECT_THAT(error_of(best), HasSubstr("needs eval_steps, of which save_steps is a multiple"));
}

TEST(BestModel, NeedsSaveStepsToBeAMultipleOfEvalSteps) {
  const auto steps = [](const std::string& save, const std::string& eval) {
    return error_of(best + "save_steps: " + save + "\neval_steps: " + eval);
  };
  for (const auto& [save, eval] :
       {std::pair{"500", "500"}, {"500", "100"}, {"0.5", "0.1"}, {"0.3", "0.1"}, {"0.7", "0.07"}})
    EXPECT_EQ(steps(save, eval), "no error") << save << " " << eval;
  EXPECT_THAT(steps("500", "300"), HasSubstr("a multiple of eval_steps, and 500 is none of 300"));
  EXPECT_THAT(steps("100", "500"), HasSubstr("and 100 is none of 500"));
  EXPECT_THAT(steps("0.5", "0.2"), HasSubstr("and 0.5 is none of 0.2"));
  EXPECT_THAT(steps("500", "0.1"),
              AllOf(HasSubstr("save_steps (500)"), HasSubstr("both shares of all steps")));
}

}  // namespace
}  // namespace strata
