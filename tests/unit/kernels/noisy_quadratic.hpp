#pragma once
// A badly conditioned quadratic with noisy gradients, trained by the optimizer under test:
// curvatures spread over six decades within every block of moments.

#include <cmath>
#include <vector>

#include "contract/kernels/kernels_harness.hpp"

namespace strata::testing {

struct TrainingState {
  UpdateRule rule = UpdateRule::adamw;
  DType master = DType::f32;  // u16: split
  DType moments = DType::f32;
};

class NoisyQuadratic {
 public:
  static constexpr std::int64_t count = 1024;

  explicit NoisyQuadratic(const TrainingState& state)
      : state_(state),
        gradient_(zeros(DType::bf16, {count})),
        master_(zeros(state.master, {count})),
        moment1_(zeros(state.moments, {count})),
        moment2_(zeros(state.moments, {count})),
        weight_(zeros(DType::bf16, {count})) {
    for (std::int64_t i = 0; i < count; ++i) {
      curvature_.push_back(std::pow(10.0, 6 * random_.next_uniform() - 4));
      set(i, static_cast<float>(random_.next_normal()));
    }
  }

  void train(Kernels& kernels, int steps, double learning_rate) {
    for (int step = 0; step < steps; ++step) {
      compute_gradient();
      UpdateArgs args = operands();
      // Down to zero, so that what is left is not the last steps' noise.
      args.learning_rate = learning_rate * (1 - static_cast<double>(step) / steps);
      args.step = ++steps_done_;
      kernels.update(args, host_stream());
    }
  }

  double value(std::int64_t i) const {
    if (state_.master == DType::f32) return master_.at(i);
    const auto weight = weight_.view().as<bfloat16>()[i];
    return static_cast<double>(join_master(weight, master_.view().as<std::uint16_t>()[i]));
  }
  double loss() const {
    double sum = 0;
    for (std::int64_t i = 0; i < count; ++i) sum += curvature(i) * value(i) * value(i) / 2;
    return sum;
  }
  double largest() const {
    double result = 0;
    for (std::int64_t i = 0; i < count; ++i) result = std::max(result, std::abs(value(i)));
    return result;
  }
  std::string weights() const { return weight_.bits(); }
  // Elements of 8-bit moments whose first is not zero and whose second is: a step from there on
  // would be huge.
  std::int64_t num_without_moment2() const {
    std::int64_t result = 0;
    for (std::int64_t i = 0; i < count; ++i)
      result += (moment1_.view().as<std::uint8_t>()[i] & 0x7f) != 0 &&
                moment2_.view().as<std::uint8_t>()[i] == 0;
    return result;
  }

 private:
  double curvature(std::int64_t i) const { return curvature_[static_cast<std::size_t>(i)]; }
  void set(std::int64_t i, float value) {
    weight_.view().as<bfloat16>()[i] = weight_to_bfloat16(value);
    if (state_.master == DType::f32) return master_.set(i, static_cast<double>(value));
    master_.view().as<std::uint16_t>()[i] = master_low_bits(value);
  }
  // Noise of a tenth of a typical gradient; one element in eight has a gradient only now and then.
  void compute_gradient() {
    for (std::int64_t i = 0; i < count; ++i) {
      const double noise = 0.1 * random_.next_normal();
      const bool rests = i % 8 == 0 && random_.next_below(50) != 0;
      gradient_.set(i, rests ? 0 : curvature(i) * (value(i) + noise));
    }
  }
  UpdateArgs operands() {
    UpdateArgs args;
    args.rule = state_.rule;
    args.gradient = gradient_;
    args.master = master_;
    args.moment1 = moment1_;
    args.moment2 = moment2_;
    args.weight = weight_;
    args.decays = {&whole_, 1};
    args.weight_decay = 1e-3;
    args.epsilon = 1e-12;  // next to nothing: nothing but moment2 holds a step back
    return args;
  }

  TrainingState state_;
  PhiloxStream random_{81, 0};
  std::vector<double> curvature_;
  Tensor gradient_, master_, moment1_, moment2_, weight_;
  DecayRange whole_{0, count};
  std::int64_t steps_done_ = 0;
};

}  // namespace strata::testing
