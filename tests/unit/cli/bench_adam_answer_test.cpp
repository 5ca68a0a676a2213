#include "src/cli/command_bench_adam_answer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "strata/optim/optimizer.hpp"

namespace strata {
namespace {

using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Optional;

const AdamLayout small{UpdateRule::adamw, DType::bf16, DType::u16, DType::q8};

PassResult pass_of(const std::string& name, int threads, double seconds) {
  PassResult result;
  result.pass = name;
  result.threads = threads;
  result.count = 1'000'000;
  result.bytes_per_element = 14;
  result.seconds.values = {seconds};
  return result;
}

PassReport measured() {
  PassReport report;
  report.bench = PassBench::adam;
  report.results = {
      pass_of(norm_pass_name(DType::bf16), 1, 9), pass_of(update_pass_name(small), 1, 9),
      pass_of(norm_pass_name(DType::bf16), 2, 1e-4), pass_of(update_pass_name(small), 2, 3e-4)};
  return report;
}

TEST(AdamAnswer, AddsNormAndUpdateByTheMostThreads) {
  EXPECT_THAT(step_seconds(measured(), small, 7e9), Optional(DoubleNear(2.8, 1e-9)));
}

TEST(AdamAnswer, HasNothingToSayOfALayoutThatWasNotMeasured) {
  EXPECT_EQ(step_seconds(measured(), {}, 7e9), std::nullopt);
  AdamLayout other = small;
  other.gradient = DType::f32;
  EXPECT_EQ(step_seconds(measured(), other, 7e9), std::nullopt);
}

TEST(AdamAnswer, TellsSecondsPerStepAndWhatIsApproximate) {
  const std::string text =
      format_adam_answer(measured(), {small, {}}, {{"7B", 7e9}, {"70B", 70e9}});
  EXPECT_THAT(text,
              AllOf(HasSubstr("2 threads"), HasSubstr("2.80"), HasSubstr("28.0"),
                    HasSubstr("approximate"), HasSubstr("exact"), Not(HasSubstr("the config's"))));
}

TEST(AdamAnswer, MarksTheLayoutOfTheConfig) {
  const std::string text = format_adam_answer(measured(), {{}, small}, {{"config's", 1e9, small}});
  EXPECT_THAT(text, HasSubstr("0.400  <- the config's"));
}

// Two modules count the same bytes, as neither may include the other.
TEST(AdamAnswer, CountsBytesAsTheOptimizerDoes) {
  for (const UpdateRule rule : {UpdateRule::adamw, UpdateRule::lion})
    for (const AdamLayout& layout : all_state_layouts(rule)) {
      OptimizerConfig config;
      config.rule = rule;
      config.master = layout.master == DType::u16 ? MasterFormat::split : MasterFormat::f32;
      config.moments = layout.moments;
      EXPECT_EQ(state_bytes(layout), state_bytes_per_parameter(config));
      EXPECT_EQ(update_pass_bytes(layout),
                pass_bytes_per_parameter(config, layout.gradient, DType::bf16));
    }
}

}  // namespace
}  // namespace strata
