// Which layers keep their insides for backward, and what that takes and saves.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/model/tiny_llama.hpp"

namespace strata::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::int64_t kept_tokens = 48;

struct KeptLayers {
  explicit KeptLayers(int kept, std::int64_t layers = 2, int micro_batches = 1) {
    LlamaConfig config = tiny_llama();
    config.num_layers = layers;
    model = make_llama(config, {DType::bf16, kept_tokens, 0}, *kernels);
    model->declare_state(program, micro_batches);
    model->declare_training(program, train, micro_batches, {1, kept});
  }

  std::vector<int> blocks_kept() const {
    std::vector<int> blocks;
    for (const Shard& shard : program.shards) {
      if (shard.role == Role::saved && shard.micro_batch == 0) blocks.push_back(shard.block);
    }
    return blocks;
  }
  const Segment& segment(SegmentKind kind, int block) const {
    return *std::ranges::find_if(program.segments, [&](const Segment& s) {
      return s.kind == kind && s.block == block && s.micro_batch == 0;
    });
  }
  const Use& last_use(SegmentKind kind, int block) const {
    return segment(kind, block).uses.back();
  }

  std::unique_ptr<Kernels> kernels = make_ref_kernels();
  std::unique_ptr<Model> model;
  Program program;
  Sequence train{"train", {}};
};

TEST(KeptLayers, LieEvenlyOverTheDepthOfTheModel) {
  EXPECT_THAT(KeptLayers(0, 8).blocks_kept(), IsEmpty());
  EXPECT_THAT(KeptLayers(1, 8).blocks_kept(), ElementsAre(8));
  EXPECT_THAT(KeptLayers(2, 8).blocks_kept(), ElementsAre(4, 8));
  EXPECT_THAT(KeptLayers(3, 8).blocks_kept(), ElementsAre(3, 6, 8));
  EXPECT_THAT(KeptLayers(7, 8).blocks_kept(), ElementsAre(2, 3, 4, 5, 6, 7, 8));
  EXPECT_THAT(KeptLayers(8, 8).blocks_kept(), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_THAT(KeptLayers(1 << 30, 3).blocks_kept(), ElementsAre(1, 2, 3)) << "more than there are";
}

TEST(KeptLayers, AreSavedByForwardAndReadByBackwardAfterAllElse) {
  const KeptLayers model(1);
  const Use &saved = model.last_use(SegmentKind::forward, 2),
            &read = model.last_use(SegmentKind::backward, 2);
  EXPECT_EQ(model.program.shard(saved.shard).name, "saved/layers.1/micro-batch 0");
  EXPECT_EQ(saved.access, Access::produce);
  EXPECT_EQ(read.shard, saved.shard);
  EXPECT_EQ(read.access, Access::read);
  EXPECT_EQ(model.segment(SegmentKind::forward, 2).uses.size(), 5u);
  EXPECT_EQ(model.segment(SegmentKind::backward, 2).uses.size(), 7u);
  EXPECT_EQ(model.segment(SegmentKind::forward, 1).uses.size(), 4u) << "recomputed";
  EXPECT_EQ(model.segment(SegmentKind::backward, 1).uses.size(), 6u);
  EXPECT_NO_THROW(validate(model.program));
}

TEST(KeptLayers, SaveWhatBackwardWouldRecompute) {
  constexpr std::int64_t t = kept_tokens, h = 24, q = 4, g = 2, d = 8, f = 36, alignment = 256;
  const KeptLayers model(2);
  const Shard& saved = model.program.shard(model.program.find(Role::saved, 1, 0));
  const std::int64_t values = 2 * t * (3 * h + 2 * q * d + 2 * g * d + 3 * f) + 4 * t * (2 + q);
  EXPECT_GE(saved.bytes(), values);
  EXPECT_LT(saved.bytes(), values + 13 * alignment);
}

TEST(KeptLayers, HaveAShardForEachMicroBatch) {
  const KeptLayers model(2, 2, 3);
  for (int micro_batch = 0; micro_batch < 3; ++micro_batch) {
    EXPECT_TRUE(model.program.find(Role::saved, 1, micro_batch).valid()) << micro_batch;
  }
}

TEST(KeptLayers, AreNotSavedByAnEvaluation) {
  KeptLayers model(2);
  Sequence eval{"eval", {}};
  model.model->declare_score(model.program, eval, 0);
  for (SegmentId id : eval.segments) {
    for (const Use& use : model.program.segment(id).uses) {
      EXPECT_NE(model.program.shard(use.shard).role, Role::saved);
    }
  }
}

TEST(KeptLayers, NeedNoScratchForTheForwardsValues) {
  const KeptLayers kept(2), recomputed(0);
  for (const SegmentKind kind : {SegmentKind::forward, SegmentKind::backward}) {
    EXPECT_LT(kept.segment(kind, 1).scratch_bytes, recomputed.segment(kind, 1).scratch_bytes);
  }
}

TEST(KeptLayers, ComputeNoForwardInBackward) {
  constexpr double t = kept_tokens, h = 24, q = 32, g = 16, f = 36;
  constexpr double products = 2 * t * (2 * h * q + 2 * h * g + 3 * h * f);
  const KeptLayers kept(2), recomputed(0);
  EXPECT_EQ(kept.program.flops(kept.segment(SegmentKind::backward, 1)),
            2 * products + 5 * t * t * q);
  EXPECT_EQ(kept.program.flops(kept.segment(SegmentKind::forward, 1)),
            recomputed.program.flops(recomputed.segment(SegmentKind::forward, 1)));
}

}  // namespace
}  // namespace strata::test
