// A piece of a checkpoint that does not come back from the drive as it was written ends the save
// there, at rest and while training goes on.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/store/aligned_memory.hpp"
#include "strata/core/error.hpp"
#include "src/train/checkpoint_sink.hpp"
#include "src/train/state_saver.hpp"
#include "support/flipping_engine.hpp"
#include "support/polling.hpp"
#include "unit/train/rank_state.hpp"

namespace strata {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::RankState;
using ::testing::ThrowsMessage;

constexpr std::size_t writes_at_once = 3;

// The first piece is damaged on its way back; only that is awaited before more than three are
// written.
class DamagingEngine : public testing::FlippingEngine {
 public:
  DamagingEngine() : FlippingEngine(make_sim_engine({})) {}
  void watch(const CheckpointWriter& writer) { writer_ = &writer; }
  void submit(std::span<const IoRequest> requests) override {
    if (requests[0].op == IoOp::write && ++num_writes_ == writes_at_once)
      testing::comes_true([&] { return writer_->has_failed(); });
    FlippingEngine::submit(requests);
  }
  std::size_t num_writes() const { return num_writes_; }

 private:
  const CheckpointWriter* writer_ = nullptr;
  std::size_t num_writes_ = 0;
};

class DamagedPiece : public ::testing::Test {
 protected:
  DamagedPiece()
      : state_(config(), 0),
        pieces_(state_.run()),
        memory_(checkpoint_alignment, 4 * SaveBuffers::bytes_of_one(state_.program()), "a test"),
        writer_(CheckpointWriter::open(engine_, "/out", 1, state_vectors(state_.run()), true)) {
    engine_.watch(*writer_);
  }
  static RunConfig config() {
    RunConfig config = testing::tiny_config(testing::tiny_files());
    config.offload.tile_bytes = 16 << 10;
    config.offload.nvme_paths = {"/nvme"};
    return config;
  }
  void expect_early_end() {
    ASSERT_GT(pieces_.all().size(), 4 * writes_at_once);
    EXPECT_LE(engine_.num_writes(), writes_at_once);
    EXPECT_THAT([&] { writer_->finish(); },
                ThrowsMessage<Error>(AllOf(HasSubstr("what was written does not come back"),
                                           HasSubstr("elements ["),
                                           HasSubstr("/out/checkpoint-1.partial/0000"))));
    writer_.reset();
    EXPECT_THAT(engine_.file_system().list("/out"), IsEmpty());
  }

  RankState state_;
  TilePieces pieces_;
  AlignedMemory memory_;
  DamagingEngine engine_;
  std::unique_ptr<CheckpointWriter> writer_;
};

TEST_F(DamagedPiece, EndsASaveAtRest) {
  save_state(state_.run(), state_.state(), *writer_, memory_.span(), false);
  expect_early_end();
}

TEST_F(DamagedPiece, EndsASaveWhileTrainingGoesOn) {
  CheckpointSink sink(state_.run(), memory_.span());
  sink.arm(*writer_);
  for (const TilePiece& piece : pieces_.all())
    sink.save(piece.shard, piece.tile, state_.state().read(piece.shard, piece.tile), {});
  sink.wait();
  expect_early_end();
}

}  // namespace
}  // namespace strata
