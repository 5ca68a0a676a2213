// What a writer reads back while it writes: all that it may, each piece once, and nothing that is
// not as it was written passes.

#include <cerrno>

#include "support/flipping_engine.hpp"
#include "support/polling.hpp"
#include "unit/checkpoint/checkpoint_testing.hpp"
#include "unit/checkpoint/state_checkpoint_testing.hpp"
#include "unit/checkpoint/watched_engine.hpp"

namespace strata::testing {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<StateVector> direct_vectors() {
  return {{Role::master, "a", DType::f32, 3 * norm_chunk_elements + 17},
          {Role::weight, "a", DType::bf16, 2 * norm_chunk_elements + 5}};
}
// That shares blocks with its neighbours.
StateVector shared_vector() {
  return {Role::moment1, "a", DType::q8, 2 * norm_chunk_elements + 300};
}

std::vector<StatePiece> write_all(CheckpointWriter& writer,
                                  const std::vector<StateVector>& vectors) {
  write_rank(writer, vectors, 1, cut_into_tiles, 0);
  return writer.finish();
}

std::string piece_name(const std::vector<StateVector>& vectors, std::size_t number) {
  for (const StateVector& vector : vectors)
    for (const Range& range : cut_into_tiles.of(vector.count))
      if (number-- == 0)
        return "elements [" + std::to_string(range.first) + ", " + std::to_string(range.end()) +
               ") of vector \"" + state_vector_name(vector) + "\"";
  return "no such piece";
}
std::size_t num_pieces(const std::vector<StateVector>& vectors) {
  std::size_t pieces = 0;
  for (const StateVector& vector : vectors) pieces += cut_into_tiles.of(vector.count).size();
  return pieces;
}

// What finish() says where `spoil` changes what reaches the drive. Leaves no folder.
template <typename Expected>
std::string failure_of_finish(WatchedEngine& engine, const std::vector<StateVector>& vectors) {
  auto writer = CheckpointWriter::open(engine, out, 1, vectors, true);
  const std::string said = error_of<Expected>([&] { write_all(*writer, vectors); });
  writer.reset();
  EXPECT_THAT(engine.file_system().list(out), IsEmpty());
  return said;
}

TEST(CheckpointReadBack, BeginsBeforeTheLastPieceIsWritten) {
  WatchedEngine engine(make_sim_engine({}));
  const StateVector vector = direct_vectors()[0];
  const auto contents = vector_contents(vector, 1);
  const auto writer = CheckpointWriter::open(engine, out, 1, {vector}, true);
  std::uint64_t read = 0;
  for (const Range& range : cut_into_tiles.of(vector.count)) {
    const Buffer memory = piece_memory(vector, range, contents);
    Outcome outcome;
    writer->write(0, range.first, range.count, memory.span(), outcome);
    EXPECT_TRUE(outcome.wait().ok());
    read += memory.bytes();
    ASSERT_TRUE(engine.wait_for_reads("00000-master.bin", read)) << "element " << range.first;
  }
  writer->commit(writer->finish(), note_of_step(1));
  EXPECT_TRUE(is_good(engine, out + "/checkpoint-1", 1));
}

TEST(CheckpointReadBack, ReadsEveryPieceOnceByWhoeverMay) {
  WatchedEngine engine(make_sim_engine({}));
  std::vector<StateVector> vectors = direct_vectors();
  vectors.push_back(shared_vector());
  const auto writer = CheckpointWriter::open(engine, out, 1, vectors, true);
  const auto pieces = write_all(*writer, vectors);
  EXPECT_EQ(engine.seen(IoOp::read).size(), num_pieces(direct_vectors()));
  for (const StatePiece& piece : pieces)
    EXPECT_EQ(piece.is_read_back, piece.vector < 2) << "what shares blocks waits for all writers";
  engine.forget();
  writer->commit(pieces, note_of_step(1));
  const auto later = engine.seen(IoOp::read);
  EXPECT_EQ(later.size(), num_pieces({shared_vector()}) + 1);
  EXPECT_EQ(later.back().file, "checkpoint.json");
}

// As tiles of a usual size do, where no rank's slice begins elsewhere.
TEST(CheckpointReadBack, TakesPiecesOfQ8ThatShareNoPageWithOthers) {
  constexpr std::int64_t tile = 1024 * norm_chunk_elements;  // 65 pages of 64 KiB
  const std::vector<StateVector> vectors = {{Role::moment1, "a", DType::q8, 3 * tile + 4321}};
  WatchedEngine engine(make_sim_engine({}));
  const auto writer = CheckpointWriter::open(engine, out, 1, vectors, true);
  const Buffer memory(tile / norm_chunk_elements * 4160), last(3 * 4096);
  std::deque<Outcome> outcomes;
  // The second tile in two pieces that share a block.
  for (const Range& range :
       {Range{0, tile}, Range{tile, 4096}, Range{tile + 4096, tile - 4096}, Range{2 * tile, tile}})
    writer->write(0, range.first, range.count, memory.span(), outcomes.emplace_back());
  writer->write(0, 3 * tile, 4321, last.span(), outcomes.emplace_back());
  const auto pieces = writer->finish();
  std::vector<bool> read_back;
  for (const StatePiece& piece : pieces) read_back.push_back(piece.is_read_back);
  EXPECT_THAT(read_back, ElementsAre(true, false, false, true, true));
  writer->commit(pieces, note_of_step(1));
  EXPECT_THAT(CheckpointReader::open(engine, out + "/checkpoint-1")->verify(), IsEmpty());
}

TEST(CheckpointReadBack, LeavesTheDriveToWhatIsMoreUrgent) {
  WatchedEngine engine(make_sim_engine({}));
  const auto writer = CheckpointWriter::open(engine, out, 1, direct_vectors(), true);
  write_all(*writer, direct_vectors());
  const auto of_least = Field(&SeenTransfer::priority, IoPriority::write_back);
  EXPECT_THAT(engine.seen(IoOp::read), Each(of_least));
  EXPECT_THAT(engine.seen(IoOp::write), Each(of_least));
}

TEST(CheckpointReadBack, TakesNoMoreMemoryThanStated) {
  constexpr std::int64_t tile = 1 << 22;
  WatchedEngine engine(make_sim_engine({.latency_us_max = 20}));
  const auto writer =
      CheckpointWriter::open(engine, out, 1, {{Role::master, "a", DType::f32, 3 * tile}}, true);
  const Buffer memory(tile * sizeof(float));
  std::deque<Outcome> outcomes;
  for (const std::int64_t first : {0 * tile, 1 * tile, 2 * tile})
    writer->write(0, first, tile, memory.span(), outcomes.emplace_back());
  writer->commit(writer->finish(), note_of_step(1));
  EXPECT_GT(engine.most_read_bytes(), 0u);
  EXPECT_LE(engine.most_read_bytes(), checkpoint_read_memory_bytes);
}

TEST(CheckpointReadBack, IsDoneByWritersThatDoNotCommit) {
  const auto disk = std::make_shared<TempDirectory>();
  WatchedEngine engine(make_io_engine("threads", {})), other(make_io_engine("threads", {}));
  const Cut halves{.world = 2, .tile_elements = norm_chunk_elements};
  const auto first = CheckpointWriter::open(engine, disk->path(), 1, direct_vectors(), true);
  const auto second = CheckpointWriter::open(other, disk->path(), 1, direct_vectors(), false);
  write_rank(*first, direct_vectors(), 1, halves, 0);
  write_rank(*second, direct_vectors(), 1, halves, 1);
  auto all = first->finish();
  for (const StatePiece& piece : second->finish()) all.push_back(piece);
  EXPECT_EQ(engine.seen(IoOp::read).size(), engine.seen(IoOp::write).size());
  EXPECT_EQ(other.seen(IoOp::read).size(), other.seen(IoOp::write).size());
  engine.forget();
  first->commit(all, note_of_step(1));
  EXPECT_EQ(engine.seen(IoOp::read).size(), 1u) << "checkpoint.json";
  EXPECT_TRUE(is_good(engine, disk->path() + "/checkpoint-1", 1));
}

// --- What it finds

TEST(CheckpointReadBack, FindsABitThatChangedOnItsWay) {
  for (std::size_t at = 0; at < num_pieces(direct_vectors()); ++at) {
    WatchedEngine engine(make_sim_engine({}), [&](std::size_t number, std::span<std::byte> bytes) {
      if (number == at) bytes[number] ^= std::byte{4};
    });
    EXPECT_THAT(failure_of_finish<Error>(engine, direct_vectors()),
                AllOf(HasSubstr("checkpoint-1 was not saved"),
                      HasSubstr("what was written does not come back"),
                      HasSubstr(piece_name(direct_vectors(), at)),
                      HasSubstr("/out/checkpoint-1.partial/")));
  }
}

TEST(CheckpointReadBack, FindsWritesThatTheDriveOnlyPromised) {
  for (std::size_t at = 0; at < num_pieces(direct_vectors()); ++at) {
    WatchedEngine engine(make_sim_engine({}), [&](std::size_t number, std::span<std::byte> bytes) {
      if (number == at) std::ranges::fill(bytes, std::byte{0});  // as they were reserved
    });
    EXPECT_THAT(failure_of_finish<Error>(engine, direct_vectors()),
                HasSubstr(piece_name(direct_vectors(), at)));
  }
}

TEST(CheckpointReadBack, FindsWhatIsNotZeroBehindAVector) {
  WatchedEngine engine(make_sim_engine({}), [](std::size_t number, std::span<std::byte> bytes) {
    if (number == 3) bytes.back() = std::byte{1};
  });
  EXPECT_THAT(failure_of_finish<Error>(engine, direct_vectors()),
              AllOf(HasSubstr("other bytes than zeros"), HasSubstr("00000-master.bin")));
}

TEST(CheckpointReadBack, OfWhatSharesBlocksIsCommits) {
  WatchedEngine engine(make_sim_engine({}), [](std::size_t number, std::span<std::byte> bytes) {
    if (number == 1) bytes[0] ^= std::byte{1};
  });
  auto writer = CheckpointWriter::open(engine, out, 1, {shared_vector()}, true);
  const auto pieces = write_all(*writer, {shared_vector()});
  EXPECT_THAT(error_of<Error>([&] { writer->commit(pieces, note_of_step(1)); }),
              AllOf(HasSubstr("what was written does not come back"),
                    HasSubstr(piece_name({shared_vector()}, 1))));
  writer.reset();
  EXPECT_THAT(engine.file_system().list(out), IsEmpty());
}

TEST(CheckpointReadBack, TellsWhatCannotBeReadWithItsReason) {
  for (std::size_t at = 0; at < num_pieces(direct_vectors()); ++at) {
    WatchedEngine engine(make_sim_engine({}));
    engine.fail_read(at, EIO);
    auto writer = CheckpointWriter::open(engine, out, 1, direct_vectors(), true);
    try {
      write_all(*writer, direct_vectors());
      FAIL() << "no error";
    } catch (const SystemError& error) {
      EXPECT_EQ(error.error_number(), EIO);
      EXPECT_THAT(error.what(),
                  AllOf(HasSubstr("checkpoint-1 was not saved"), HasSubstr("cannot be read"),
                        HasSubstr("/out/checkpoint-1.partial/0000")));
    }
    writer.reset();
    EXPECT_THAT(engine.file_system().list(out), IsEmpty());
  }
}

TEST(CheckpointReadBack, OfAPieceThatWasNotWrittenIsNotTried) {
  WatchedEngine engine(make_sim_engine({.faults = {{.at_operation = 0, .error_number = ENOSPC}}}));
  const StateVector vector = direct_vectors()[0];
  auto writer = CheckpointWriter::open(engine, out, 1, {vector}, true);
  const Buffer memory = piece_memory(vector, {0, norm_chunk_elements}, vector_contents(vector, 1));
  Outcome outcome;
  writer->write(0, 0, norm_chunk_elements, memory.span(), outcome);
  EXPECT_EQ(outcome.wait().error_number, ENOSPC);
  try {
    writer->finish();
    FAIL() << "no error";
  } catch (const SystemError& error) {
    EXPECT_EQ(error.error_number(), ENOSPC);
    EXPECT_THAT(error.what(), HasSubstr("save_total_limit"));
  }
  EXPECT_THAT(engine.seen(IoOp::read), IsEmpty());
}

// --- How it ends early

// What has failed is known soon, to whoever asks.
bool is_failed_soon(const CheckpointWriter& writer) {
  return comes_true([&] { return writer.has_failed(); });
}

// Of a save whose first piece is damaged on its way back, once that is known.
class DamagedSave : public ::testing::Test {
 protected:
  DamagedSave() : engine_(std::make_unique<FlippingEngine>(make_sim_engine({}))) {
    writer_ = CheckpointWriter::open(engine_, out, 1, {vector_}, true);
    EXPECT_TRUE(write(0).ok());
    EXPECT_TRUE(is_failed_soon(*writer_)) << "before all is written";
  }
  IoResult write(std::int64_t piece) {
    const Range range{piece * norm_chunk_elements, norm_chunk_elements};
    const Buffer memory = piece_memory(vector_, range, contents_);
    Outcome outcome;
    writer_->write(0, range.first, range.count, memory.span(), outcome);
    return outcome.wait();
  }

  const StateVector vector_ = {Role::master, "a", DType::f32, 8 * norm_chunk_elements};
  const std::vector<std::byte> contents_ = vector_contents(vector_, 1);
  WatchedEngine engine_;
  std::unique_ptr<CheckpointWriter> writer_;
};

TEST_F(DamagedSave, WritesNothingMore) {
  EXPECT_EQ(write(1).error_number, ECANCELED);
  EXPECT_EQ(write(2).error_number, ECANCELED);
  EXPECT_EQ(engine_.seen(IoOp::write).size(), 1u);
  EXPECT_EQ(engine_.seen(IoOp::read).size(), 1u);
}

TEST_F(DamagedSave, TellsThePieceAndItsFileAndLeavesNothing) {
  write(1);
  EXPECT_THAT(error_of<Error>([&] { writer_->finish(); }),
              AllOf(HasSubstr("checkpoint-1 was not saved"),
                    HasSubstr("elements [0, 4096) of vector \"master/a\""),
                    HasSubstr("/out/checkpoint-1.partial/00000-master.bin")));
  writer_.reset();
  EXPECT_THAT(engine_.file_system().list(out), IsEmpty());
}

TEST(CheckpointReadBack, OfAWriterWhoseWriteFailedIsFollowedByNoOther) {
  WatchedEngine engine(make_sim_engine({.faults = {{.at_operation = 0, .error_number = EIO}}}));
  const StateVector vector = direct_vectors()[0];
  const auto writer = CheckpointWriter::open(engine, out, 1, {vector}, true);
  const Buffer memory = piece_memory(vector, {0, norm_chunk_elements}, vector_contents(vector, 1));
  Outcome first, second;
  writer->write(0, 0, norm_chunk_elements, memory.span(), first);
  EXPECT_EQ(first.wait().error_number, EIO);
  EXPECT_TRUE(is_failed_soon(*writer));
  writer->write(0, norm_chunk_elements, norm_chunk_elements, memory.span(), second);
  EXPECT_EQ(second.wait().error_number, ECANCELED);
  EXPECT_EQ(engine.seen(IoOp::write).size(), 1u);
}

TEST(CheckpointReadBack, EndsWithAWriterThatIsGivenUp) {
  for (int pieces = 0; pieces < 8; ++pieces) {
    const auto engine = make_sim_engine({.latency_us_max = 300, .chunk_bytes = 8192});
    const StateVector vector = {Role::master, "a", DType::f32, 8 * norm_chunk_elements};
    const auto contents = vector_contents(vector, 1);
    std::vector<Buffer> memory;
    std::deque<Outcome> outcomes;
    {
      const auto writer = CheckpointWriter::open(*engine, out, 1, {vector}, true);
      for (const Range& range : cut_into_tiles.of(vector.count)) {
        if (std::ssize(memory) == pieces) break;
        memory.push_back(piece_memory(vector, range, contents));
        writer->write(0, range.first, range.count, memory.back().span(), outcomes.emplace_back());
      }
    }
    for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.calls(), 1);
    EXPECT_THAT(engine->file_system().list(out), IsEmpty());
  }
}

TEST(CheckpointReadBack, ThatFailedLeavesLaterSavesAsGoodAsEver) {
  WatchedEngine engine(make_sim_engine({}), [](std::size_t number, std::span<std::byte> bytes) {
    if (number == 0) bytes[0] ^= std::byte{1};
  });
  EXPECT_THAT(failure_of_finish<Error>(engine, direct_vectors()), HasSubstr("does not come back"));
  save(engine, out, 1, direct_vectors(), 2, cut_into_tiles);
  EXPECT_TRUE(is_good(engine, out + "/checkpoint-1", 2));
}

}  // namespace
}  // namespace strata::testing
