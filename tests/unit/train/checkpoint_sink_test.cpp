#include "src/train/checkpoint_sink.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <future>
#include <random>

#include "io/store/aligned_memory.hpp"
#include "strata/core/error.hpp"
#include "strata/core/philox.hpp"
#include "src/train/state_saver.hpp"
#include "support/one_fault_engine.hpp"
#include "unit/train/rank_state.hpp"

namespace strata {
namespace {

using ::testing::HasSubstr;
using testing::OneFault;
using testing::OneFaultEngine;
using testing::RankState;
using ::testing::ThrowsMessage;
using testing::tiny_config;
using testing::tiny_files;

RunConfig config_of(MasterFormat master, DType moments) {
  RunConfig config = tiny_config(tiny_files());
  config.optimizer_master = master;
  config.optimizer_moments = moments;
  config.offload.tile_bytes = 16 << 10;
  config.offload.nvme_paths = {"/nvme"};
  config.offload.master = {0.3, 0.4, 0.3};
  return config;
}

// A rank's state, of any bytes, and a disk for it.
class SinkBench {
 public:
  explicit SinkBench(const RunConfig& config)
      : state_(config, 0),
        memory_(checkpoint_alignment, 4 * SaveBuffers::bytes_of_one(state_.program()), "a test"),
        engine_(make_sim_engine({})),
        pieces_(state_.run()),
        sink_(state_.run(), memory_.span()) {
    PhiloxStream random(20261130, 3);
    for (const Shard& shard : state_.program().shards)
      if (shard.role == Role::master || shard.role == Role::weight || shard.role == Role::moment1 ||
          shard.role == Role::moment2)
        for (int tile = 0; tile < state_.program().num_tiles(shard.id); ++tile)
          state_.state().write(shard.id, tile, [&](std::span<std::byte> bytes) {
            for (std::byte& byte : bytes) byte = std::byte(random.next_u32());
          });
  }

  std::unique_ptr<CheckpointWriter> open(std::int64_t step) {
    return CheckpointWriter::open(engine_, "/out", step, vectors(), true);
  }
  std::vector<StateVector> vectors() const { return state_vectors(state_.run()); }
  // All tiles, in an order of their own.
  void hand_over() {
    std::vector<TilePiece> tiles = pieces_.all();
    std::shuffle(tiles.begin(), tiles.end(), std::mt19937(7));
    for (const TilePiece& tile : tiles) hand_over(tile);
  }
  void hand_over(const TilePiece& tile) {
    std::vector<std::byte> bytes = copy(tile.shard, tile.tile), weight;
    if (tile.weight.valid()) weight = copy(tile.weight, tile.weight_tile);
    sink_.save(tile.shard, tile.tile, bytes, weight);
  }
  void save_at_rest(std::int64_t step) {
    const auto writer = open(step);
    save_state(state_.run(), state_.state(), *writer, {}, false);
    writer->commit(writer->finish(), {.step = step});
  }
  std::vector<std::byte> vector_of(std::int64_t step, int index) {
    const auto reader = CheckpointReader::open(engine_, "/out/checkpoint-" + std::to_string(step));
    const StateVector& vector = reader->info().vectors[static_cast<std::size_t>(index)];
    std::vector<std::byte> bytes(state_vector_bytes(vector));
    reader->read(index, 0, vector.count, bytes);
    return bytes;
  }

  const TilePieces& pieces() const { return pieces_; }
  CheckpointSink& sink() { return sink_; }
  OneFault& fault() { return engine_.fault(); }

 private:
  std::vector<std::byte> copy(ShardId shard, int tile) {
    const auto bytes = state_.state().read(shard, tile);
    return {bytes.begin(), bytes.end()};
  }

  RankState state_;
  AlignedMemory memory_;
  OneFaultEngine engine_;
  TilePieces pieces_;
  CheckpointSink sink_;
};

struct Formats {
  MasterFormat master;
  DType moments;
};
class CheckpointSinkOf : public ::testing::TestWithParam<Formats> {};
INSTANTIATE_TEST_SUITE_P(Formats, CheckpointSinkOf,
                         ::testing::Values(Formats{MasterFormat::f32, DType::f32},
                                           Formats{MasterFormat::split, DType::bf16},
                                           Formats{MasterFormat::f32, DType::q8}));

TEST_P(CheckpointSinkOf, WritesWhatIsWrittenOfTheStateAtRest) {
  SinkBench bench(config_of(GetParam().master, GetParam().moments));
  bench.save_at_rest(1);
  for (const std::int64_t step : {2, 3}) {  // One after the other: it takes more than one.
    const auto writer = bench.open(step);
    bench.sink().arm(*writer);
    bench.hand_over();
    bench.sink().wait();
    writer->commit(writer->finish(), {.step = step});
    const std::vector<StateVector> vectors = bench.vectors();
    for (int i = 0; i < std::ssize(vectors); ++i)
      EXPECT_TRUE(bench.vector_of(step, i) == bench.vector_of(1, i))
          << state_vector_name(vectors[static_cast<std::size_t>(i)]);
  }
}

TEST(CheckpointSink, DropsWhatComesAfterAWriteThatFailed) {
  SinkBench bench(config_of(MasterFormat::f32, DType::f32));
  const auto writer = bench.open(1);
  bench.sink().arm(*writer);
  bench.fault().arm(5, ENOSPC, OneFault::Lasting::from_then_on);
  bench.hand_over();
  bench.sink().wait();
  EXPECT_LT(bench.fault().count(), bench.pieces().all().size());
  EXPECT_THAT([&] { writer->finish(); }, ThrowsMessage<SystemError>(HasSubstr("was not saved")));
}

TEST(CheckpointSink, TakesNothingWhereNoCheckpointWaitsForIt) {
  SinkBench bench(config_of(MasterFormat::f32, DType::f32));
  const auto writer = bench.open(1);
  bench.fault().arm(~std::uint64_t{0}, 0, OneFault::Lasting::once);
  bench.hand_over();
  EXPECT_EQ(bench.fault().count(), 0u);
}

TEST(CheckpointSink, ThatIsGivenUpLetsGoOfTheWriter) {
  SinkBench bench(config_of(MasterFormat::f32, DType::f32));
  {
    const auto writer = bench.open(1);
    bench.sink().arm(*writer);
    bench.hand_over(bench.pieces().all().front());
    auto waiting = std::async(std::launch::async, [&] { bench.sink().wait(); });
    bench.sink().give_up();
    EXPECT_NO_THROW(waiting.get());
  }
  bench.hand_over();  // The writer is gone.
}

}  // namespace
}  // namespace strata
