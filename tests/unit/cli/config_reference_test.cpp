#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "strata/cli/config.hpp"
#include "support/source_dir.hpp"
#include "unit/cli/config_texts.hpp"

namespace strata {
namespace {

void expect_same(const RunConfig& left, const RunConfig& right) {
  ASSERT_EQ(left.resolved.size(), right.resolved.size());
  for (std::size_t i = 0; i < left.resolved.size(); ++i) {
    EXPECT_EQ(left.resolved[i].key, right.resolved[i].key);
    EXPECT_EQ(left.resolved[i].value, right.resolved[i].value) << left.resolved[i].key;
  }
}

constexpr const char* unusual = R"(
model_name_or_path: "odd \"name\": # \\ \t 'x'"
output_dir: "null"
export_dir: "true"
dataset: ["1e5", "a, b", "- c"]
eval_dataset: ["héldout"]
packing: separate
learning_rate: 0.30000000000000004
max_steps: 9007199254740993
num_train_epochs: 0.1
lr_scheduler_type: cosine
lr_scheduler_kwargs: {min_lr_ratio: 0.1}
eval_strategy: steps
non_finite: skip_step
seed: 18446744073709551615
data_seed: 0
optim: lion
optimizer_moments: q8
export_dtype: bf16
bf16: false
offload:
  optimizer: {gpu: 0.1, cpu: 0.2}
  master: {gpu: 0.3333333333333333}
  activations: {device: nvme, ratio: 0.7}
  gpu_limit: 268435457
  cpu_limit: 3GiB
  nvme_paths: [/mnt/a]
zero_optimization: {stage: 1}
)";

TEST(FormatConfig, ReadsBackAsTheSameConfig) {
  const RunConfig defaults = parse(""), config = parse(unusual);
  expect_same(parse(format_config(defaults)), defaults);
  expect_same(parse(format_config(config)), config);
}

TEST(FormatConfig, KeepsTextThatLooksLikeSomethingElse) {
  const RunConfig config = parse(format_config(parse(unusual)));
  EXPECT_EQ(config.model_name_or_path, "odd \"name\": # \\ \t 'x'");
  EXPECT_EQ(config.output_dir, "null");
  EXPECT_EQ(config.export_dir, "true");
  EXPECT_EQ(config.dataset.front(), "1e5");
  EXPECT_EQ(config.offload.gpu_limit, 268435457u);
}

TEST(FormatConfig, SaysWhereEachValueCameFrom) {
  const std::vector<std::string> overrides{"seed=1"};
  const std::string text =
      format_config(parse_config("learning_rate: 1e-5", "run.yaml", overrides));
  EXPECT_TRUE(text.find("learning_rate: 1e-05 ") != std::string::npos);
  const auto line = [&](const std::string& key) {
    const std::size_t begin = text.find(key);
    return text.substr(begin, text.find('\n', begin) - begin);
  };
  EXPECT_TRUE(line("learning_rate:").ends_with("# run.yaml:1"));
  EXPECT_TRUE(line("seed:").ends_with("# command line"));
  EXPECT_TRUE(line("weight_decay:").ends_with("# default"));
}

TEST(ConfigReference, IsWhatTheDocumentationSays) {
  const std::string file = source_dir().string() + "/docs/config.md";
  if (std::getenv("STRATA_WRITE_DOCS") != nullptr)
    std::ofstream(file) << config_reference_markdown();
  std::ifstream stream(file);
  const std::string text((std::istreambuf_iterator<char>(stream)),
                         std::istreambuf_iterator<char>());
  EXPECT_EQ(text, config_reference_markdown())
      << "make it anew by running this test with STRATA_WRITE_DOCS=1 in the environment";
}

}  // namespace
}  // namespace strata
