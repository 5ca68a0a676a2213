// Transfers that are hashed on their way: cancellation, destruction, priorities, many at a time.

#include <array>
#include <atomic>
#include <deque>
#include <latch>
#include <thread>

#include "io/store/hashed_transfer.hpp"
#include "support/sanitizers.hpp"
#include "unit/io/shard_store_testing.hpp"

namespace strata::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::unique_ptr<ShardStore> make_store(IoEngine& engine, const StoreOptions& options = verified) {
  return ShardStore::create(engine, small_spec(StoreKind::scratch, {"/a", "/b"}, 12), options);
}

TEST(HashQueue, TakesTheHighestClassFirstAndEveryFourthTurnTheLowest) {
  HashQueue queue;
  std::array<HashedTransfer, 9> transfers;
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    transfers[i].tile = i;
    transfers[i].request.priority =
        i < 2 ? IoPriority::write_back : (i < 4 ? IoPriority::prefetch : IoPriority::now);
    queue.push(transfers[i]);
  }
  std::vector<std::size_t> order;
  while (HashedTransfer* next = queue.pop()) order.push_back(next->tile);
  EXPECT_THAT(order, ElementsAre(4, 5, 6, 0, 7, 8, 2, 1, 3));
  EXPECT_TRUE(queue.empty());
}

// Holds up the hash thread, which tells it of a refused read, until the latch opens.
class Blocker : public IoCompletion {
 public:
  explicit Blocker(std::latch& gate) : gate_(gate) {}
  void complete(const IoResult&) noexcept override {
    blocked.count_down();
    gate_.wait();
  }
  std::latch blocked{1};

 private:
  std::latch& gate_;
};

// A store with one hash thread that is held up.
class HeldUp : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < 11; ++i) write_tile(*store_, i, 1);
    store_->submit(IoOp::read, 11, never_written_.span(), IoPriority::now, blocker_);
    blocker_.blocked.wait();
  }
  void TearDown() override {
    if (!gate_.try_wait()) gate_.count_down();
    store_.reset();
  }

  std::unique_ptr<SimEngine> engine_ = make_sim_engine({});
  std::unique_ptr<ShardStore> store_ = make_store(*engine_);
  const Buffer never_written_{store_->padded_bytes(11)};
  std::latch gate_{1};
  Blocker blocker_{gate_};
};

TEST_F(HeldUp, GivesUpAWriteThatIsNotYetHashedAndLeavesTheTileAsItWas) {
  const Buffer bytes = tile_bytes(*store_, 0, 2);
  Outcome outcome;
  store_->submit(IoOp::write, 0, bytes.span(), IoPriority::now, outcome);
  EXPECT_EQ(store_->cancel(outcome), 1u);
  EXPECT_EQ(store_->cancel(outcome), 0u);
  gate_.count_down();
  EXPECT_EQ(outcome.wait().error_number, ECANCELED);
  EXPECT_EQ(outcome.calls(), 1);
  EXPECT_TRUE(holds(*store_, 0, 1));
}

TEST_F(HeldUp, CompletesAReadThatOnlyWaitsToBeCompared) {
  const Buffer got(store_->padded_bytes(0));
  Outcome outcome;
  store_->submit(IoOp::read, 0, got.span(), IoPriority::now, outcome);
  engine_->drain();
  EXPECT_EQ(store_->cancel(outcome), 0u);
  gate_.count_down();
  EXPECT_TRUE(outcome.wait().ok());
  EXPECT_TRUE(got == tile_bytes(*store_, 0, 1));
}

TEST_F(HeldUp, WaitsInItsDestructorForWhatIsUnderWay) {
  std::deque<Outcome> outcomes;
  std::vector<Buffer> buffers;
  for (int i = 0; i < 8; ++i) {
    buffers.push_back(tile_bytes(*store_, i, 2));
    store_->submit(i % 2 == 0 ? IoOp::write : IoOp::read, i, buffers.back().span(),
                   IoPriority::prefetch, outcomes.emplace_back());
  }
  std::jthread opener([&] { gate_.count_down(); });
  store_.reset();
  for (Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.calls(), 1);
    EXPECT_TRUE(outcome.wait().ok()) << outcome.wait().message;
  }
}

TEST(ShardStoreCancel, AnswersEveryTransferOnceWhenCancelledAtAnyMoment) {
  const auto engine = make_sim_engine({.seed = 4, .latency_us_max = 50, .chunk_bytes = 4096});
  const auto store = make_store(*engine);
  for (int i = 0; i < 12; ++i) write_tile(*store, i, 1);
  for (int round = 0; round < rounds(60, 15); ++round) {
    std::deque<Outcome> outcomes;
    std::vector<Buffer> buffers;
    for (int i = 0; i < 12; ++i) {
      buffers.push_back(tile_bytes(*store, i, 1));
      store->submit((i + round) % 2 == 0 ? IoOp::write : IoOp::read, i, buffers.back().span(),
                    IoPriority::now, outcomes.emplace_back());
    }
    std::size_t cancelled = 0, told = 0;
    for (Outcome& outcome : outcomes) cancelled += store->cancel(outcome);
    for (Outcome& outcome : outcomes) told += outcome.wait().error_number == ECANCELED ? 1 : 0;
    // The last part of a transfer may have been under way: then it is not told of.
    EXPECT_LE(told, cancelled);
    for (int i = 0; i < 12; ++i) write_tile(*store, i, 1);
  }
  for (int i = 0; i < 12; ++i) EXPECT_TRUE(holds(*store, i, 1));
}

// Each thread goes on and on with tiles of its own.
TEST(ShardStoreThreads, KeepEveryTilesBytesUnderMixedTransfers) {
  const auto engine = make_sim_engine(
      {.seed = 6, .latency_us_max = 20, .short_transfer_probability = 0.2, .chunk_bytes = 8192});
  StoreOptions options = verified;
  options.hash_threads = 3;
  const auto store = make_store(*engine, options);
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (int round = 0; round < rounds(60, 15); ++round) {
        for (int tile = thread; tile < 12; tile += 4) {
          write_tile(*store, tile, static_cast<std::uint64_t>(round));
          EXPECT_TRUE(holds(*store, tile, static_cast<std::uint64_t>(round)));
        }
      }
    });
  }
}

TEST(ShardStoreThreads, ReadOneTileFromManyAtATime) {
  const auto engine = make_sim_engine({.seed = 6, .latency_us_max = 20});
  const auto store = make_store(*engine);
  write_tile(*store, 5, 9);
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      for (int round = 0; round < 20; ++round) EXPECT_TRUE(holds(*store, 5, 9));
    });
  }
}

}  // namespace
}  // namespace strata::testing
