// A thousand steps of the optimizer pass against torch.optim (make_goldens.py): AdamW, Adam and SGD
// with momentum, gradients of all sizes from zero to 1e16, and steps around the millionth.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "golden/optim/golden_file.hpp"
#include "golden/optim/gradient_model.hpp"
#include "strata/optim/optimizer.hpp"

namespace strata {
namespace {

using testing::counter_value;
using testing::GoldenFile;

constexpr std::int64_t elements = 64;
constexpr std::size_t num_sizes = 8;
constexpr float sizes[num_sizes] = {1, 0, 1e-41f, 1e-30f, 1e-9f, 0x1p-10f, 1e4f, 1e16f};
// Of the largest value that elements with gradients of one size had in any recorded step. Both
// sides round each fp32 operation, not always the same ones.
constexpr double update_tolerance = 2e-6;

class GoldenUpdate {
 public:
  GoldenUpdate(const std::string& name, const std::vector<double>& o)
      : rule_(parse_update_rule(name.substr(0, name.find('.')))), options_(o) {
    for (std::uint32_t i = 0; i < elements; ++i) {
      weight_[i] = counter_value(0, i);
      if (!is_late()) continue;
      moment1_[i] = counter_value(2001, i);
      moment2_[i] = counter_value(2002, i) * counter_value(2002, i);
    }
  }
  bool is_late() const { return options_[5] > 1; }

  // `count`: 1 for the first step.
  void step(Kernels& kernels, int count) {
    for (std::uint32_t i = 0; i < elements; ++i)
      gradient_[i] = counter_value(static_cast<std::uint32_t>(count), i) * sizes[i % num_sizes];
    UpdateArgs args;
    args.rule = rule_;
    args.gradient = view(gradient_);
    args.master = view(weight_);
    args.moment1 = view(moment1_);
    args.moment2 = view(moment2_);
    args.decays = {&whole_, 1};
    args.learning_rate = options_[0];
    args.beta1 = options_[1];
    args.beta2 = options_[2];
    args.epsilon = options_[3];
    args.weight_decay = options_[4];
    args.step = static_cast<std::int64_t>(options_[5]) + count - 1;
    const auto stream = make_host_device({})->make_stream("update");
    kernels.update(args, *stream);
  }

  // Against the `index`-th recorded step of a [steps, 3, elements] golden.
  void expect(const std::vector<double>& golden, std::size_t index, const std::string& what) const {
    expect_row(weight_, golden, index, 0, what + " weight");
    expect_row(moment1_, golden, index, 1, what + " moment1");
    if (has_moment2(rule_)) expect_row(moment2_, golden, index, 2, what + " moment2");
  }

 private:
  using Row = std::vector<float>;
  static TensorView view(Row& row) { return {row.data(), DType::f32, {elements}}; }
  static double largest(const std::vector<double>& golden, std::size_t row, std::size_t size) {
    double result = 0;
    for (std::size_t at = row * elements; at < golden.size(); at += 3 * elements)
      for (std::size_t i = size; i < elements; i += num_sizes)
        result = std::max(result, std::abs(golden[at + i]));
    return result;
  }
  static void expect_row(const Row& values, const std::vector<double>& golden, std::size_t index,
                         std::size_t row, const std::string& what) {
    for (std::size_t i = 0; i < elements; ++i) {
      const double bound = update_tolerance * largest(golden, row, i % num_sizes) + 1e-44;
      ASSERT_NEAR(static_cast<double>(values[i]), golden[(index * 3 + row) * elements + i], bound)
          << what << " element " << i;
    }
  }

  UpdateRule rule_;
  std::vector<double> options_;
  DecayRange whole_{0, elements};
  Row gradient_ = Row(elements), weight_ = Row(elements), moment1_ = Row(elements),
      moment2_ = Row(elements);
};

class UpdateFollowsTorch : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Kernels, UpdateFollowsTorch, ::testing::Values("ref", "cpu"),
                         [](const auto& chosen) { return chosen.param; });

TEST_P(UpdateFollowsTorch, ForAThousandStepsWithGradientsOfAllSizes) {
  const auto kernels = GetParam() == "ref" ? make_ref_kernels() : make_cpu_kernels({});
  const GoldenFile goldens("updates.safetensors");
  ASSERT_EQ(goldens.cases().size(), 10u);
  for (const std::string& name : goldens.cases()) {
    GoldenUpdate update(name, goldens.read(name + ".options"));
    const std::vector<double> states = goldens.read(name + ".states");
    const std::size_t num_recorded = states.size() / (3 * elements);
    constexpr int recorded[] = {1, 10, 100, 1000};
    int count = 0;
    for (std::size_t index = 0; index < num_recorded; ++index) {
      while (count < recorded[index]) update.step(*kernels, ++count);
      update.expect(states, index, name + " step " + std::to_string(count));
    }
    EXPECT_EQ(count, update.is_late() ? 10 : 1000);
  }
}

}  // namespace
}  // namespace strata
