// The shapes of configs/models: read as a model folder is, they make models of the known sizes.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "strata/checkpoint/hf_folder.hpp"
#include "strata/checkpoint/llama_tensors.hpp"
#include "strata/model/model.hpp"
#include "strata/train/planned_run.hpp"
#include "support/source_dir.hpp"

namespace strata {
namespace {

const std::filesystem::path folder = source_dir() / "configs/models";

// Elements of the published weights.
const std::map<std::string, std::int64_t> known_sizes{
    {"Llama-3.1-8B", 8'030'261'248},
    {"Llama-3.1-70B", 70'553'706'496},
    {"Llama-3.1-405B", 405'853'388'800},
    {"Qwen2.5-7B", 7'615'616'512},
    {"Qwen2.5-32B", 32'763'876'352},
    {"Qwen2.5-72B", 72'706'203'648},
    {"Qwen3-8B", 8'190'735'360},
    {"Qwen3-32B", 32'762'123'264},
    {"Mistral-7B-v0.1", 7'241'732'096},
    {"Mistral-7B-v0.3", 7'248'023'552},
    {"Mistral-Large-2407", 122'610'069'504},
    {"SmolLM2-135M", 134'515'008},
    {"SmolLM2-360M", 361'821'120},
    {"SmolLM2-1.7B", 1'711'376'384},
};

std::int64_t parameters_of(const HfConfig& config) {
  const auto kernels = make_ref_kernels();
  return make_llama(llama_config(config), {.tokens_per_micro_batch = 4096}, *kernels)
      ->num_parameters();
}

TEST(ShippedModels, HaveAsManyParametersAsThePublishedWeights) {
  for (const auto& [name, size] : known_sizes) {
    const HfConfig config = read_hf_config(folder / name);
    EXPECT_EQ(parameters_of(config), size) << name;
    EXPECT_EQ(num_parameters(config), size) << name;
  }
}

TEST(ShippedModels, AreAllKnown) {
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    EXPECT_TRUE(known_sizes.contains(entry.path().filename())) << entry.path();
}

}  // namespace
}  // namespace strata
