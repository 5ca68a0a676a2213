#include "gpu_check/training_figures.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace strata {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string line(int step, double loss, double seconds) {
  return CheckJson{{"step", step},
                   {"loss", loss},
                   {"grad_norm", 2 * loss},
                   {"step_seconds", seconds},
                   {"tokens_per_second", 100 / seconds},
                   {"num_tokens", 100}}
             .dump() +
         "\n";
}

std::string metrics() {
  return line(1, 5.5, 9) + line(2, 5.25, 8) + "{\"event\": \"checkpoint\", \"text\": \"x\"}\n" +
         line(3, 5.125, 2) + line(4, 5.0, 4) + line(5, 4.5, 3);
}

TrainedSteps trained(const std::string& placement, std::vector<double> losses) {
  TrainedSteps steps;
  steps.placement = placement;
  steps.losses = losses;
  steps.grad_norms = std::vector<double>(losses.size(), 1.5);
  steps.step_seconds = steps.tokens_per_s = std::vector<double>(losses.size(), 1.0);
  return steps;
}

TEST(TrainingFigures, ReadsStepsAndSkipsOtherLines) {
  const TrainedSteps steps = steps_in(metrics(), "(a)");
  EXPECT_THAT(steps.losses, ElementsAre(5.5, 5.25, 5.125, 5.0, 4.5));
  EXPECT_THAT(steps.grad_norms, ElementsAre(11, 10.5, 10.25, 10, 9));
  EXPECT_EQ(steps.median_step_seconds(), 3);  // of 2, 4 and 3: the first two steps warm up
}

TEST(TrainingFigures, RefusesDamagedMetrics) {
  EXPECT_THROW(steps_in("", "(a)"), std::runtime_error);
  EXPECT_THROW(steps_in(line(1, 5, 1) + line(3, 5, 1), "(a)"), std::runtime_error);
  EXPECT_THROW(steps_in(line(1, 5, 1) + "{\"step\": 2, \"los", "(a)"), CheckJson::exception);
  EXPECT_THROW(steps_in(line(1, std::nan(""), 1), "(a)"), std::runtime_error);
}

TEST(TrainingFigures, SetsThePredictionBesideTheMeasurement) {
  const auto predicted = prediction_in(
      R"({"prediction": {"step_seconds": 2.0, "bound_seconds": 1.5, "tokens_per_step": 100,
          "mfu": 0.6, "bound_by": "compute"}})");
  ASSERT_TRUE(predicted.has_value());
  const CheckRow row = training_row("3B (a)", steps_in(metrics(), "(a)"), predicted);
  EXPECT_EQ(row.outcome, Outcome::pass);
  EXPECT_DOUBLE_EQ(row.figures["mfu"].get<double>(), 0.4);
  EXPECT_DOUBLE_EQ(row.figures["achieved_of_bound"].get<double>(), 0.5);
  EXPECT_THAT(row.told, HasSubstr("step 3 s, 33 tok/s; MFU 40.0%; 50% of the bound, 1.5 s by "
                                  "compute; predicted 2 s (+50%)"));
}

TEST(TrainingFigures, DoesWithoutAPrediction) {
  EXPECT_FALSE(prediction_in(R"({"prediction": null})").has_value());
  EXPECT_FALSE(prediction_in("{}").has_value());
  const CheckRow row = training_row("3B (a)", steps_in(metrics(), "(a)"), {});
  EXPECT_EQ(row.told, "step 3 s, 33 tok/s");
  EXPECT_FALSE(row.figures.contains("mfu"));
}

TEST(TrainingFigures, FindsLossesThatDifferInTheLastBit) {
  const double loss = 4.25, next = std::nextafter(loss, 5);
  const CheckRow row = equality_row(
      "losses", {trained("(a)", {5, loss}), trained("(b)", {5, loss}), trained("(c)", {5, next})});
  EXPECT_EQ(row.outcome, Outcome::fail);
  EXPECT_EQ(row.told, "loss of step 2: 4.25 in (a), 4.2500000000000009 in (c)");
}

TEST(TrainingFigures, FindsNormsThatDiffer) {
  TrainedSteps other = trained("(b)", {5, 4});
  other.grad_norms[0] = std::nextafter(1.5, 0);
  const CheckRow row = equality_row("losses", {trained("(a)", {5, 4}), other});
  EXPECT_EQ(row.outcome, Outcome::fail);
  EXPECT_THAT(row.told, HasSubstr("norm of step 1"));
}

TEST(TrainingFigures, ComparesTheStepsThatAllRunsHave) {
  const CheckRow row = equality_row("losses", {trained("(a)", {5, 4, 3}), trained("(b)", {5, 4})});
  EXPECT_EQ(row.outcome, Outcome::pass);
  EXPECT_EQ(row.figures["steps"], 2);
  EXPECT_EQ(row.told, "2 placements, 2 steps: bit-equal, loss 5 -> 4");
}

TEST(TrainingFigures, CallsNothingEqualThatWasNotCompared) {
  EXPECT_EQ(equality_row("losses", {}).outcome, Outcome::not_run);
  EXPECT_EQ(equality_row("losses", {trained("(a)", {5, 4})}).outcome, Outcome::not_run);
  EXPECT_EQ(equality_row("losses", {trained("(a)", {5, 4}), trained("(b)", {5})}).outcome,
            Outcome::fail);
}

}  // namespace
}  // namespace strata
