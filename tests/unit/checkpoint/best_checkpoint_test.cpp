// The checkpoint of the least held-out loss, by what the checkpoints themselves say.

#include "strata/checkpoint/best_checkpoint.hpp"

#include <cerrno>

#include "support/one_fault_engine.hpp"
#include "unit/checkpoint/checkpoint_testing.hpp"
#include "unit/checkpoint/state_checkpoint_testing.hpp"

namespace strata::testing {
namespace {

using ::testing::ElementsAre;

TEST(BestStep, IsThatOfTheLeastLoss) {
  EXPECT_EQ(best_step({{1, {3, "h"}}, {2, {1, "h"}}, {3, {2, "h"}}}), 2);
  EXPECT_EQ(best_step({{7, {3, "h"}}}), 7);
  EXPECT_EQ(best_step({}), std::nullopt);
}

TEST(BestStep, IsTheEarlierOfEquals) {
  EXPECT_EQ(best_step({{1, {2, "h"}}, {2, {1, "h"}}, {3, {1, "h"}}}), 2);
}

TEST(BestStep, ComparesLossesOfTheSameDataAlone) {
  const HeldOutLosses losses{{1, {1, "old"}}, {2, {3, "new"}}, {3, {4, "new"}}};
  EXPECT_EQ(best_step(losses), 2) << "by default that of the last";
  EXPECT_EQ(best_step(losses, "old"), 1);
  EXPECT_EQ(best_step(losses, "other"), std::nullopt);
}

class BestOfFolder : public ::testing::Test {
 protected:
  void save_one(std::int64_t step, const std::optional<HeldOutLoss>& held_out) {
    save(*engine_, "/out", step, {{Role::master, "a", DType::f32, 10}}, 1, {}, held_out);
  }
  std::vector<std::int64_t> evaluated() {
    std::vector<std::int64_t> steps;
    for (const auto& [step, loss] : held_out_losses(*engine_, "/out")) steps.push_back(step);
    return steps;
  }

  const std::unique_ptr<OneFaultEngine> engine_ =
      std::make_unique<OneFaultEngine>(make_sim_engine({}));
};

TEST_F(BestOfFolder, IsFoundByWhatEachCheckpointSays) {
  save_one(5, HeldOutLoss{2.5, "h"});
  save_one(10, HeldOutLoss{0.1 + 0.2, "h"});
  save_one(15, {});
  const auto best = best_checkpoint(*engine_, "/out");
  ASSERT_TRUE(best);
  EXPECT_EQ(best->entry.step, 10);
  EXPECT_EQ(best->entry.path, "/out/checkpoint-10");
  EXPECT_EQ(best->held_out, (HeldOutLoss{0.1 + 0.2, "h"}));
  EXPECT_THAT(evaluated(), ElementsAre(5, 10));
}

TEST_F(BestOfFolder, IsNoneWhereNoneWasEvaluated) {
  EXPECT_FALSE(best_checkpoint(*engine_, "/nowhere"));
  save_one(5, {});
  EXPECT_FALSE(best_checkpoint(*engine_, "/out"));
}

TEST_F(BestOfFolder, IsNoneThatIsDamaged) {
  save_one(5, HeldOutLoss{1, "h"});
  save_one(10, HeldOutLoss{2, "h"});
  FileSystem& files = engine_->file_system();
  files.write_file("/out/checkpoint-5/checkpoint.json", {});
  EXPECT_EQ(best_checkpoint(*engine_, "/out")->entry.step, 10);
}

// Else the best one would be removed for a read that failed once.
TEST_F(BestOfFolder, IsNotKnownWhileTheDiskFails) {
  save_one(5, HeldOutLoss{1, "h"});
  save_one(10, HeldOutLoss{2, "h"});
  engine_->fault().arm(~std::uint64_t{0}, EIO, OneFault::Lasting::once);
  held_out_losses(*engine_, "/out");
  const std::uint64_t all = engine_->fault().count();
  ASSERT_GT(all, 4u);
  for (std::uint64_t at = 0; at < all; ++at) {
    engine_->fault().arm(at, EIO, OneFault::Lasting::once);
    EXPECT_THROW(held_out_losses(*engine_, "/out"), SystemError) << at;
  }
}

}  // namespace
}  // namespace strata::testing
