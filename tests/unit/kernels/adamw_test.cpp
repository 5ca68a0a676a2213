// AdamW's update against what the paper's formulas say, by hand.

#include <cmath>
#include <memory>

#include "contract/kernels/kernels_harness.hpp"

namespace strata::testing {
namespace {

class AdamW : public ::testing::TestWithParam<Implementation> {
 protected:
  struct State {
    Tensor gradient = Tensor(DType::f32, {1});
    Tensor master = Tensor(DType::f32, {1});
    Tensor moment1 = zeros(DType::f32, {1});
    Tensor moment2 = zeros(DType::f32, {1});
    DecayRange whole = {0, 1};
    UpdateArgs args() const {
      UpdateArgs args;
      args.gradient = gradient;
      args.master = master;
      args.moment1 = moment1;
      args.moment2 = moment2;
      args.decays = {&whole, 1};
      return args;
    }
  };
  void step(const UpdateArgs& args) { kernels_->update(args, host_stream()); }

 private:
  std::unique_ptr<Kernels> kernels_ = GetParam().make();
};

TEST_P(AdamW, MovesByTheLearningRateInTheFirstStep) {
  for (double gradient : {1e-3, -5.0, 200.0}) {
    State state;
    state.gradient.set(0, gradient);
    state.master.set(0, 1);
    UpdateArgs args = state.args();
    args.learning_rate = 0.01;
    step(args);
    EXPECT_NEAR(state.master.at(0), 1 - std::copysign(0.01, gradient), 1e-6);
  }
}

TEST_P(AdamW, DecaysTheWeightApartFromTheGradient) {
  State state;
  state.gradient.set(0, 0);
  state.master.set(0, 2);
  UpdateArgs args = state.args();
  args.learning_rate = 0.1;
  args.weight_decay = 0.5;
  step(args);
  EXPECT_NEAR(state.master.at(0), 2 * (1 - 0.1 * 0.5), 1e-6);
  EXPECT_EQ(state.moment1.at(0), 0);
}

TEST_P(AdamW, ScalesTheGradientBeforeTheMoments) {
  State state;
  state.gradient.set(0, 200);
  state.master.set(0, 0);
  UpdateArgs args = state.args();
  args.learning_rate = 0.1;
  args.gradient_scale = 1.0f / 200;
  step(args);
  EXPECT_NEAR(state.moment1.at(0), 0.1, 1e-7);
  EXPECT_NEAR(state.moment2.at(0), 0.001, 1e-9);
}

TEST_P(AdamW, FollowsTheDoubleRecurrenceOverManySteps) {
  State state;
  state.master.set(0, 0.5);
  UpdateArgs args = state.args();
  args.learning_rate = 1e-2;
  args.weight_decay = 0.1;
  PhiloxStream random(61, 0);
  double p = 0.5, m = 0, v = 0;
  for (int step_count = 1; step_count <= 100; ++step_count) {
    state.gradient.set(0, random.next_normal());
    args.step = step_count;
    step(args);
    const double g = state.gradient.at(0);
    p *= 1 - 1e-2 * 0.1;
    m = 0.9 * m + 0.1 * g;
    v = 0.999 * v + 0.001 * g * g;
    const double m_hat = m / (1 - std::pow(0.9, step_count)),
                 v_hat = v / (1 - std::pow(0.999, step_count));
    p -= 1e-2 * m_hat / (std::sqrt(v_hat) + 1e-8);
  }
  EXPECT_NEAR(state.master.at(0), p, 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Kernels, AdamW, ::testing::ValuesIn(implementations()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace strata::testing
