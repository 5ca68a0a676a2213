#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"
#include "unit/model/tiny_llama.hpp"

namespace strata::test {
namespace {

using ::testing::ElementsAre;

constexpr std::int64_t program_tokens = 16;

struct Declared {
  Program program;
  Sequence sequence;
};

Declared declare_train(const LlamaConfig& config, int micro_batches, int group = 1) {
  const auto kernels = make_ref_kernels();
  const auto model = make_llama(config, {DType::bf16, program_tokens, 0}, *kernels);
  Declared declared;
  model->declare_state(declared.program, micro_batches);
  model->declare_training(declared.program, declared.sequence, micro_batches, {group});
  return declared;
}

std::vector<std::string> segment_names(const Declared& declared) {
  std::vector<std::string> names;
  for (SegmentId id : declared.sequence.segments) {
    names.push_back(declared.program.segment(id).name);
  }
  return names;
}

// "read weight/layers.0", in order.
std::vector<std::string> uses(const Declared& declared, std::size_t segment) {
  static constexpr const char* words[] = {"read ", "produce ", "accumulate ", "update "};
  std::vector<std::string> found;
  for (const Use& use : declared.program.segment(declared.sequence.segments[segment]).uses) {
    found.push_back(words[static_cast<std::size_t>(use.access)] +
                    declared.program.shard(use.shard).name);
  }
  return found;
}

DType gradient_dtype(const Program& program, int block) {
  return program.shard(program.find(Role::gradient, block)).dtype;
}

TEST(LlamaProgram, IsValidForTiedAndUntiedModels) {
  EXPECT_NO_THROW(validate(declare_train(tiny_llama(), 2).program));
  EXPECT_NO_THROW(validate(declare_train(tied_llama(), 2).program));
}

TEST(LlamaProgram, RunsForwardLossAndBackwardOfEachMicroBatch) {
  EXPECT_THAT(segment_names(declare_train(tiny_llama(), 1)),
              ElementsAre("forward embedding micro-batch 0", "forward layers.0 micro-batch 0",
                          "forward layers.1 micro-batch 0", "loss head micro-batch 0",
                          "backward layers.1 micro-batch 0", "backward layers.0 micro-batch 0",
                          "backward embedding micro-batch 0"));
  EXPECT_EQ(declare_train(tiny_llama(), 3).sequence.segments.size(), 21u);
}

TEST(LlamaProgram, PassesTheMicroBatchesOfAGroupThroughEachBlockTogether) {
  LlamaConfig config = tiny_llama();
  config.num_layers = 1;
  std::vector<std::string> expected;
  for (const char* pair : {"0 1", "2 3"})
    for (const char* work : {"forward embedding", "forward layers.0", "loss head",
                             "backward layers.0", "backward embedding"})
      for (const char digit : {pair[0], pair[2]})
        expected.push_back(std::string(work) + " micro-batch " + digit);
  EXPECT_EQ(segment_names(declare_train(config, 4, 2)), expected);
}

TEST(LlamaProgram, AddsToEachGradientInTheOrderOfMicroBatchesWhateverTheGroup) {
  const auto contributions = [](const Declared& declared) {
    std::map<int, std::vector<int>> micro_batches;  // by block
    for (SegmentId id : declared.sequence.segments) {
      const Segment& segment = declared.program.segment(id);
      for (const Use& use : segment.uses) {
        if (use.access != Access::accumulate) continue;
        EXPECT_EQ(declared.program.shard(use.shard).block, segment.block);
        micro_batches[segment.block].push_back(segment.micro_batch);
      }
    }
    return micro_batches;
  };
  const auto horizontal = contributions(declare_train(tiny_llama(), 4));
  EXPECT_EQ(horizontal.size(), 4u);
  for (const int group : {2, 4})
    EXPECT_EQ(contributions(declare_train(tiny_llama(), 4, group)), horizontal) << group;
}

TEST(LlamaProgram, RefusesGroupsThatDoNotDivideTheMicroBatches) {
  for (const int group : {0, -1, 3, 8})
    EXPECT_THROW(declare_train(tiny_llama(), 4, group), ConfigError) << group;
}

TEST(LlamaProgram, RefusesGroupsWithATiedHeadSayingWhyAndWhatToDo) {
  EXPECT_NO_THROW(declare_train(tied_llama(), 4));
  try {
    declare_train(tied_llama(), 4, 4);
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("tie_word_embeddings"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("order of that sum"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("offload.accumulation_group: horizontal"));
  }
}

TEST(LlamaProgram, KeepsTheOrderOfUsesThatItDocuments) {
  const Declared declared = declare_train(tiny_llama(), 1);
  EXPECT_THAT(uses(declared, 0), ElementsAre("read weight/embedding", "read input/micro-batch 0",
                                             "produce activation/embedding/micro-batch 0"));
  EXPECT_THAT(uses(declared, 1), ElementsAre("read weight/layers.0", "read input/micro-batch 0",
                                             "read activation/embedding/micro-batch 0",
                                             "produce activation/layers.0/micro-batch 0"));
  EXPECT_THAT(uses(declared, 5), ElementsAre("read weight/layers.0", "read input/micro-batch 0",
                                             "read activation/embedding/micro-batch 0",
                                             "read activation_gradient/layers.0/micro-batch 0",
                                             "produce activation_gradient/embedding/micro-batch 0",
                                             "accumulate gradient/layers.0"));
  EXPECT_THAT(uses(declared, 6), ElementsAre("read input/micro-batch 0",
                                             "read activation_gradient/embedding/micro-batch 0",
                                             "accumulate gradient/embedding"));
}

TEST(LlamaProgram, LetsATiedHeadUseTheEmbeddingsWeightAndGradient) {
  EXPECT_THAT(
      uses(declare_train(tied_llama(), 1), 3),
      ElementsAre("read weight/head", "read weight/embedding", "read input/micro-batch 0",
                  "read activation/layers.1/micro-batch 0", "produce metric/head/micro-batch 0",
                  "produce activation_gradient/layers.1/micro-batch 0", "accumulate gradient/head",
                  "accumulate gradient/embedding"));
  EXPECT_THAT(
      uses(declare_train(tiny_llama(), 1), 3),
      ElementsAre("read weight/head", "read input/micro-batch 0",
                  "read activation/layers.1/micro-batch 0", "produce metric/head/micro-batch 0",
                  "produce activation_gradient/layers.1/micro-batch 0",
                  "accumulate gradient/head"));
}

TEST(LlamaProgram, SumsGradientsInF32WhereThereIsMoreThanOneContribution) {
  const Program once = declare_train(tiny_llama(), 1).program;
  const Program twice = declare_train(tiny_llama(), 2).program;
  const Program tied = declare_train(tied_llama(), 1).program;
  for (int block = 0; block < 4; ++block) {
    EXPECT_EQ(gradient_dtype(once, block), DType::bf16) << block;
    EXPECT_EQ(gradient_dtype(twice, block), DType::f32) << block;
    EXPECT_EQ(gradient_dtype(tied, block), block == 0 ? DType::f32 : DType::bf16) << block;
  }
  EXPECT_EQ(once.contribution_dtype, DType::bf16);
}

TEST(LlamaProgram, DeclaresNoGradientsForAnEvaluation) {
  const auto kernels = make_ref_kernels();
  const auto model = make_llama(tiny_llama(), {DType::f32, program_tokens, 0}, *kernels);
  Declared declared;
  model->declare_state(declared.program, 0);
  model->declare_score(declared.program, declared.sequence, 0);
  for (const Shard& shard : declared.program.shards) {
    EXPECT_NE(shard.role, Role::gradient);
    EXPECT_NE(shard.role, Role::activation_gradient);
  }
  EXPECT_EQ(segment_names(declared).back(), "score head micro-batch 0");
  EXPECT_EQ(declared.program.contribution_dtype, DType::f32);
}

TEST(LlamaProgram, SharesAMicroBatchsShardsBetweenTrainingAndEvaluation) {
  const auto kernels = make_ref_kernels();
  const auto model = make_llama(tiny_llama(), {DType::bf16, program_tokens, 0}, *kernels);
  Program program;
  Sequence train{"train", {}}, eval{"eval", {}};
  model->declare_state(program, 1);
  model->declare_training(program, train, 1, {});
  const std::size_t shards = program.shards.size();
  model->declare_score(program, eval, 0);
  EXPECT_EQ(program.shards.size(), shards);
  program.sequences = {train, eval};
  EXPECT_NO_THROW(validate(program));
}

TEST(LlamaProgram, GivesShardsTheirSizes) {
  const Program program = declare_train(tiny_llama(), 2).program;
  const Shard& input = program.shard(program.find(Role::input, -1, 1));
  EXPECT_EQ(input.dtype, DType::i32);
  EXPECT_EQ(input.count, 3 * program_tokens);
  const Shard& activation = program.shard(program.find(Role::activation, 2, 1));
  EXPECT_EQ(activation.dtype, DType::bf16);
  EXPECT_EQ(activation.count, program_tokens * 24);
  const Shard& metric = program.shard(program.find(Role::metric, 3, 1));
  EXPECT_EQ(metric.dtype, DType::f64);
  EXPECT_EQ(metric.count, 1);
}

TEST(LlamaProgram, HoldsAChunkOfLogitsNeverAll) {
  const auto kernels = make_ref_kernels();
  LlamaConfig config = tied_llama();
  config.vocab_size = 128256;
  const auto model = make_llama(config, {DType::f32, 4096, 0}, *kernels);
  Program program;
  Sequence sequence;
  model->declare_state(program, 1);
  model->declare_training(program, sequence, 1, {});
  for (const Segment& segment : program.segments) {
    if (segment.kind == SegmentKind::loss) {
      EXPECT_GT(segment.scratch_bytes, 60 * MiB);
      EXPECT_LT(segment.scratch_bytes, 70 * MiB);
    }
  }
}

}  // namespace
}  // namespace strata::test
