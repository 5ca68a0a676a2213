// A hundred steps against torch.optim.AdamW and clip_grad_norm_ (make_goldens.py), through plan and
// executor.

#include <gtest/gtest.h>

#include <cmath>

#include "golden/optim/golden_file.hpp"
#include "golden/optim/gradient_model.hpp"

namespace strata {
namespace {

using testing::GoldenFile;
using testing::GradientRun;

constexpr std::size_t num_steps = 100, stride = 331;
// Both sides round each fp32 operation, not always the same ones: errors grow with the walk of the
// weights, all below 1.
constexpr double weight_tolerance = 1e-6, moment_tolerance = 1e-6, norm_tolerance = 1e-6;

struct Options {
  explicit Options(const std::vector<double>& o)
      : adamw{.beta1 = o[1], .beta2 = o[2], .epsilon = o[3], .weight_decay = o[4]},
        learning_rate(static_cast<float>(o[0])),
        max_norm(static_cast<float>(o[5])),
        gradient_size(static_cast<float>(o[6])) {}
  OptimizerConfig adamw;
  float learning_rate, max_norm, gradient_size;
};

// State after one step: rows master, moment1, moment2 of a [steps, 3, samples] golden.
class Golden {
 public:
  Golden(const GoldenFile& file, const std::string& name)
      : values_(file.read(name)), samples_(values_.size() / num_steps / 3) {}

  void expect(GradientRun& run, int block, std::size_t step, const std::string& what) const {
    const Role roles[] = {Role::master, Role::moment1, Role::moment2};
    for (std::size_t row = 0; row < 3; ++row)
      expect_row(run.read(roles[row], block), &values_[(step * 3 + row) * samples_],
                 row == 0 ? weight_tolerance : moment_tolerance,
                 what + " " + std::string(role_name(roles[row])));
  }

 private:
  void expect_row(const std::vector<float>& got, const double* golden, double tolerance,
                  const std::string& what) const {
    double largest = 0;
    for (std::size_t i = 0; i < samples_; ++i) largest = std::max(largest, std::abs(golden[i]));
    for (std::size_t i = 0; i < samples_; ++i)
      ASSERT_NEAR(static_cast<double>(got.at(i * stride)), golden[i], tolerance * largest)
          << what << " element " << i * stride;
  }
  std::vector<double> values_;
  std::size_t samples_;
};

class AdamWFollowsTorch : public ::testing::TestWithParam<std::string> {
 protected:
  static std::unique_ptr<Kernels> kernels() {
    return GetParam() == "ref" ? make_ref_kernels() : make_cpu_kernels({});
  }
};
INSTANTIATE_TEST_SUITE_P(Kernels, AdamWFollowsTorch, ::testing::Values("ref", "cpu"),
                         [](const auto& chosen) { return chosen.param; });

TEST_P(AdamWFollowsTorch, ForAHundredStepsInMasterMomentsAndNorm) {
  const GoldenFile goldens("adamw.safetensors");
  ASSERT_EQ(goldens.cases().size(), 4u);
  for (const std::string& name : goldens.cases()) {
    const Options options(goldens.read(name + ".options"));
    const std::vector<double> norms = goldens.read(name + ".norms");
    const Golden decayed(goldens, name + ".decayed"), plain(goldens, name + ".plain");
    GradientRun run(options.adamw, options.gradient_size, kernels());
    for (std::size_t step = 0; step < num_steps; ++step) {
      const auto count = static_cast<std::int64_t>(step + 1);
      const StepResult result =
          run.step({count, options.learning_rate, options.max_norm});
      ASSERT_NEAR(result.grad_norm, norms[step], norm_tolerance * norms[step])
          << name << " step " << count;
      const std::string what = name + " step " + std::to_string(count);
      decayed.expect(run, 0, step, what);
      plain.expect(run, 1, step, what);
    }
  }
}

TEST_P(AdamWFollowsTorch, WithGradientsOfNormTwoHundredClippedToOne) {
  const GoldenFile goldens("adamw.safetensors");
  const Options options(goldens.read("clipped.options"));
  EXPECT_EQ(options.max_norm, 1);
  for (const double norm : goldens.read("clipped.norms")) EXPECT_NEAR(norm, 200, 4);
}

TEST_P(AdamWFollowsTorch, LeavesTheWorkingWeightEqualToTheMaster) {
  GradientRun run({}, 1, kernels());
  run.step({1, 1e-3f, 1});
  for (const int block : {0, 1})
    EXPECT_EQ(run.read(Role::weight, block), run.read(Role::master, block));
}

}  // namespace
}  // namespace strata
