// Against transformers' models trained by torch (tests/golden/train/make_goldens.py): losses,
// gradient norms and weights, whatever ranks and accumulation make up the step's eight documents.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <tuple>

#include "sim/rank_training.hpp"
#include "strata/checkpoint/safetensors.hpp"
#include "strata/core/error.hpp"
#include "strata/data/token_shard.hpp"
#include "support/read_tensor.hpp"
#include "support/source_dir.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;
using testing::fresh_folder;
using testing::of_ranks;
using testing::Outcome;
using testing::place_ranks_randomly;
using testing::read_tensor;
using testing::train_on_ranks;

const fs::path golden_folder = source_dir() / "tests/golden";
constexpr std::int64_t documents_per_step = 8;
constexpr double loss_tolerance = 2e-6, norm_tolerance = 1e-5,
                 weights_tolerance = 2e-5;  // relative

std::vector<TokenDocument> documents_of(const SafetensorsReader& goldens) {
  const std::vector<float> tokens = read_tensor(goldens, "tokens");
  const std::vector<float> trained = read_tensor(goldens, "trained");
  std::vector<TokenDocument> documents;
  std::size_t at = 0;
  for (const float length : read_tensor(goldens, "lengths")) {
    TokenDocument document;
    for (const std::size_t end = at + static_cast<std::size_t>(length); at < end; ++at) {
      document.tokens.push_back(static_cast<std::uint32_t>(tokens[at]));
      document.trained.push_back(trained[at] > 0);
    }
    documents.push_back(std::move(document));
  }
  return documents;
}

// How a step's documents are shared out; what is left of eight is rows per micro-batch.
struct Split {
  int world = 1, stage = 3, accumulation = 1;
};

class Transformers : public ::testing::TestWithParam<std::tuple<const char*, Split>> {
 protected:
  static const Split& split() { return std::get<1>(GetParam()); }

  void SetUp() override {
    TokenShardInfo info;
    info.vocab_size = 97;
    info.tokenizer = "golden";
    write_token_shard(folder_ / "train.tok", info, documents_of(goldens_));
  }
  void TearDown() override { fs::remove_all(folder_); }

  RunConfig config() const {
    RunConfig config;
    config.model_name_or_path = golden_folder / "model" / std::get<0>(GetParam());
    config.dataset = config.eval_dataset = {folder_ / "train.tok"};
    config.evaluate = true;
    config.layout = RowLayout::separate;
    config.cutoff_len = 24;
    config.gradient_accumulation_steps = split().accumulation;
    config.per_device_train_batch_size = documents_per_step / split().world / split().accumulation;
    config.max_steps = 10;
    config.learning_rate = 3e-3;
    config.weight_decay = 0.1;
    config.max_grad_norm = 1.0;
    config.lr_scheduler_type = ScheduleKind::constant;
    config.bf16 = false;
    config.export_dtype = DType::f32;
    place_ranks_randomly(config, static_cast<std::uint64_t>(split().world + split().stage));
    config.offload.keep_layers %= 3;  // of two
    return of_ranks(config, split().world, split().stage);
  }

  void expect_golden(const std::string& name, const std::vector<double>& got, double tolerance) {
    const std::vector<float> expected = read_tensor(goldens_, name);
    ASSERT_EQ(got.size(), expected.size());
    double worst = 0;
    for (std::size_t i = 0; i < got.size(); ++i)
      worst = std::max(worst, std::abs(got[i] / static_cast<double>(expected[i]) - 1));
    record(name, worst);
    EXPECT_LE(worst, tolerance) << name;
  }
  // Each parameter's difference, in the 2-norm, relative to its own.
  void expect_golden_weights(const std::string& exported) {
    const fs::path path = folder_ / "exported.safetensors";
    std::ofstream(path, std::ios::binary) << exported;
    const SafetensorsReader file(path);
    double worst = 0;
    for (const TensorEntry& entry : file.tensors()) {
      const double error = relative_distance(read_tensor(goldens_, "weight." + entry.name),
                                             read_tensor(file, entry.name));
      EXPECT_LE(error, weights_tolerance) << entry.name;
      worst = std::max(worst, error);
    }
    EXPECT_GT(file.tensors().size(), 10u);
    record("weights", worst);
  }

 private:
  static double relative_distance(const std::vector<float>& expected,
                                  const std::vector<float>& got) {
    if (expected.size() != got.size()) return HUGE_VAL;
    double difference = 0, size = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      const auto one = static_cast<double>(expected[i]), other = static_cast<double>(got[i]);
      difference += (one - other) * (one - other);
      size += one * one;
    }
    return std::sqrt(difference / size);
  }
  static void record(const std::string& what, double error) {
    std::printf("  %s: within %.1e\n", what.c_str(), error);
    RecordProperty(what, std::to_string(error));
  }

  const fs::path folder_ = fresh_folder("golden");
  const SafetensorsReader goldens_{golden_folder / "train" /
                                   (std::string(std::get<0>(GetParam())) + ".safetensors")};
};

INSTANTIATE_TEST_SUITE_P(Runs, Transformers,
                         ::testing::Combine(::testing::Values("tied", "qwen2", "qwen3"),
                                            ::testing::Values(Split{1, 3, 4}, Split{2, 3, 2},
                                                              Split{2, 0, 4}, Split{2, 1, 1},
                                                              Split{4, 2, 1}, Split{8, 3, 1})),
                         [](const auto& chosen) {
                           const Split& split = std::get<1>(chosen.param);
                           return std::string(std::get<0>(chosen.param)) + "With" +
                                  std::to_string(split.world) + "RanksInStage" +
                                  std::to_string(split.stage);
                         });

TEST_P(Transformers, IsFollowedStepByStepToTheSameWeights) {
  const Outcome outcome = train_on_ranks(config()).outcome;
  expect_golden("losses", outcome.losses, loss_tolerance);
  expect_golden("norms", outcome.norms, norm_tolerance);
  ASSERT_EQ(outcome.held_out.size(), 2u);
  expect_golden("loss_after", {outcome.held_out.back()}, loss_tolerance);
  expect_golden_weights(outcome.weights);
}

}  // namespace
}  // namespace strata
