// Split masters are saved with their weights, as both were before the step, wherever they live.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "strata/kernels/kernels.hpp"
#include "strata/runtime/executor.hpp"
#include "strata/runtime/state_access.hpp"
#include "support/drives.hpp"
#include "support/policies.hpp"
#include "support/sanitizers.hpp"
#include "support/toy_program.hpp"

namespace strata {
namespace {

using testing::Drives;
using testing::make_toy_program;
using testing::random_saving;
using testing::roomy_limits;
using testing::rounds;
using testing::with_split_masters;

using Bytes = std::vector<std::byte>;

// Makes zeros of everything.
class ZeroModel final : public SegmentRunner {
  void run(const Segment& segment, const SegmentViews& views, const StepArgs&, Stream&) override {
    for (std::size_t i = 0; i < segment.uses.size(); ++i)
      if (segment.uses[i].access != Access::read)
        std::fill_n(views.uses[i].as<std::byte>(), views.uses[i].bytes(), std::byte{0});
  }
};

// Adds one to each byte of the state and of the weight.
class CountingOptimizer final : public UpdateRunner {
  void update(const TileUpdate& tile, const UpdateHyper&, const UpdateScalars&, Stream&) override {
    for (const TensorView* view : {&tile.master, &tile.moment1, &tile.moment2, &tile.weight})
      std::for_each_n(view->as<std::byte>(), view->bytes(), [](std::byte& value) {
        value = static_cast<std::byte>(static_cast<unsigned char>(value) + 1);
      });
  }
};

// A rank whose state is bytes of one value, the number of steps done.
class CountingRank final : public StateSink {
 public:
  CountingRank(const Program& program, const Plan& plan, const ExecutorOptions& options)
      : program_(program),
        plan_(plan),
        memory_(*device_, plan.tier_bytes[0], plan.tier_bytes[1]),
        drives_(*engine_, plan.drive_bytes.size()) {
    StoreSpec spec;
    spec.directories = drives_.paths();
    spec.tiles = NvmeTiles(program, plan).tiles();
    if (!spec.tiles.empty()) store_ = ShardStore::create(*engine_, spec, {});
    begin_with_zeros();
    ExecutorParts parts{device_.get(),  &memory_, store_.get(), kernels_.get(),
                        kernels_.get(), &model_,  &optimizer_};
    parts.sink = this;
    executor_.emplace(program, plan, parts, options);
  }

  // Saves beside each step.
  void run(int steps) {
    const std::vector<std::int32_t> input(3 * 32);
    StepArgs args;
    args.inputs.assign(2, std::as_bytes(std::span(input)));
    for (; steps_ < steps; ++steps_) {
      executor_->submit("train_save", args);
      executor_->wait_result();
      executor_->drain();
    }
  }
  int saved() const { return saved_; }

 private:
  void begin_with_zeros() {
    StateAccess state(program_, plan_, *device_, memory_, store_.get());
    for (const Shard& shard : program_.shards)
      if (shard.role <= Role::moment2)
        for (int tile = 0; tile < program_.num_tiles(shard.id); ++tile)
          state.write(shard.id, tile,
                      [](std::span<std::byte> bytes) { std::ranges::fill(bytes, std::byte{0}); });
  }

  void save(ShardId shard, int tile, std::span<const std::byte> bytes,
            std::span<const std::byte> weight) override {
    const auto is_old = [&](std::byte value) { return value == static_cast<std::byte>(steps_); };
    EXPECT_TRUE(std::ranges::all_of(bytes, is_old)) << program_.shard(shard).name << " " << tile;
    EXPECT_TRUE(std::ranges::all_of(weight, is_old)) << "its weight";
    const bool is_master = program_.shard(shard).role == Role::master;
    EXPECT_EQ(static_cast<std::int64_t>(bytes.size()), program_.tile_bytes(shard, tile));
    EXPECT_EQ(weight.size(), is_master ? bytes.size() : 0);
    ++saved_;
  }

  const Program& program_;
  const Plan& plan_;
  const std::unique_ptr<SimEngine> engine_ = make_sim_engine({});
  const std::unique_ptr<Device> device_ = make_host_device({});
  TierMemory memory_;
  Drives drives_;
  std::unique_ptr<ShardStore> store_;
  const std::unique_ptr<Kernels> kernels_ = make_ref_kernels();
  ZeroModel model_;
  CountingOptimizer optimizer_;
  int steps_ = 0, saved_ = 0;
  std::optional<Executor> executor_;  // last: its threads use the rest
};

TEST(SavesOfSplitMasters, AreOfBothHalvesAsTheyWereUnderEveryPlacement) {
  const Program program = with_split_masters(make_toy_program({.layers = 2,
                                                               .micro_batches = 2,
                                                               .layer_elements = 5000,
                                                               .embedding_elements = 9000,
                                                               .tokens = 32,
                                                               .contribution_dtype = DType::bf16}));
  for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(rounds(36, 9)); ++seed) {
    const Plan plan = make_plan(program, roomy_limits(), random_saving(seed));
    ASSERT_TRUE(verify(program, plan).empty()) << seed;
    CountingRank rank(program, plan, {static_cast<ExecutionMode>(seed % 3), seed, Poison::on});
    rank.run(3);
    EXPECT_EQ(rank.saved(), 3 * 3 * (3 + 2 + 2 + 1)) << "steps, roles, tiles of the blocks";
  }
}

}  // namespace
}  // namespace strata
