// Round trips: what is written is read back, however it was cut, by whom, and on which engine.

#include <cerrno>
#include <thread>

#include "support/sanitizers.hpp"
#include "unit/checkpoint/checkpoint_testing.hpp"
#include "unit/checkpoint/state_checkpoint_testing.hpp"

namespace strata::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(StateVectorLayout, HasElementsInOrderAndRegionsOfQ8ByTheChunk) {
  const StateVector master{Role::master, "layers.3", DType::f32, 5000};
  EXPECT_EQ(state_vector_name(master), "master/layers.3");
  EXPECT_EQ(state_vector_bytes(master), 20000u);
  EXPECT_EQ(state_vector_offset(master, 4096), 16384u);
  EXPECT_EQ(state_vector_offset(master, 5000), 20000u);
  const StateVector moment{Role::moment1, "head", DType::q8, 2 * 4096 + 300};
  EXPECT_EQ(state_vector_offset(moment, 4096), 4096u + 16 * 4);
  EXPECT_EQ(state_vector_bytes(moment), 2u * 4160 + 320 + 2 * 4);
}

TEST(StateVectorLayout, CountsPaddingAndTheManifestIntoTheBytesOfACheckpoint) {
  const std::vector<StateVector> vectors = odd_vectors();
  std::uint64_t files = 0;
  for (const StateVector& vector : vectors) files += align_up(state_vector_bytes(vector), 4096);
  EXPECT_GT(checkpoint_bytes(vectors), files);
  EXPECT_LT(checkpoint_bytes(vectors), files + 8 * MiB);
  const auto engine = make_sim_engine({});
  save(*engine, out, 1, vectors, 1);
  EXPECT_LE(CheckpointReader::open(*engine, out + "/checkpoint-1")->info().bytes,
            checkpoint_bytes(vectors));
}

TEST(StateCheckpoint, TellsWhatWasSaved) {
  const auto engine = make_sim_engine({});
  save(*engine, out, 20, odd_vectors(), 1, {.world = 2});
  const auto reader = CheckpointReader::open(*engine, out + "/checkpoint-20");
  EXPECT_EQ(reader->info().path, out + "/checkpoint-20");
  EXPECT_EQ(reader->info().note, note_of_step(20));
  EXPECT_EQ(reader->info().vectors, odd_vectors());
  EXPECT_FALSE(reader->info().strata_version.empty());
  EXPECT_EQ(reader->find(Role::moment2, "layers.3"), 3);
  EXPECT_EQ(reader->find(Role::moment1, ""), 4);
  EXPECT_EQ(reader->find(Role::master, "layers.4"), std::nullopt);
  std::uint64_t bytes = 0;
  for (const std::string& name : engine->file_system().list(reader->info().path))
    bytes += engine->file_system().file_bytes(reader->info().path + "/" + name);
  EXPECT_EQ(reader->info().bytes, bytes);
}

TEST(StateCheckpoint, LeavesNothingElseInTheFolder) {
  const auto engine = make_sim_engine({});
  save(*engine, out, 20, odd_vectors(), 1);
  EXPECT_THAT(engine->file_system().list(out), ElementsAre("checkpoint-20"));
}

class StateCheckpointCuts : public ::testing::TestWithParam<int> {};

TEST_P(StateCheckpointCuts, GivesBackTheSameBytesInAnyOtherCut) {
  const auto engine = make_sim_engine({.seed = 7,
                                       .latency_us_max = 20,
                                       .short_transfer_probability = 0.1,
                                       .again_probability = 0.1,
                                       .chunk_bytes = 8192});
  const Cut cut{.world = GetParam(), .tile_elements = norm_chunk_elements * (1 + GetParam() % 3)};
  save(*engine, out, 1, odd_vectors(), 5, cut);
  const auto reader = CheckpointReader::open(*engine, out + "/checkpoint-1");
  EXPECT_THAT(reader->verify(), IsEmpty());
  for (const int world : {1, 2, 3, 8})
    EXPECT_TRUE(holds(*reader, 5, {.world = world, .tile_elements = norm_chunk_elements * 3}));
}
INSTANTIATE_TEST_SUITE_P(Ranks, StateCheckpointCuts, ::testing::Range(1, 9));

// Longer than the reader's buffers, so that chunks end within pieces and pieces within chunks.
TEST(StateCheckpoint, ReadsPiecesOfManyChunks) {
  const std::vector<StateVector> vectors = {{Role::master, "a", DType::f32, (5 << 18) + 4321},
                                            {Role::moment1, "a", DType::q8, (9 << 19) + 1234}};
  const auto engine = make_sim_engine({});
  save(*engine, out, 1, vectors, 3, {.tile_elements = 1 << 23});
  EXPECT_TRUE(is_good(*engine, out + "/checkpoint-1", 3));
}

TEST(StateCheckpoint, TellsTheBytesVerified) {
  const auto engine = make_sim_engine({});
  save(*engine, out, 1, odd_vectors(), 1);
  const auto reader = CheckpointReader::open(*engine, out + "/checkpoint-1");
  std::vector<std::uint64_t> told;
  EXPECT_THAT(reader->verify([&](std::uint64_t bytes) { told.push_back(bytes); }), IsEmpty());
  std::uint64_t expected = 0;
  for (const StateVector& vector : odd_vectors()) expected += state_vector_bytes(vector);
  EXPECT_EQ(told.size(), reader->pieces().size());
  EXPECT_TRUE(std::ranges::is_sorted(told));
  EXPECT_EQ(told.back(), expected);
}

TEST(StateCheckpoint, MayBeInterruptedWhileVerifying) {
  const auto engine = make_sim_engine({.latency_us_max = 100});
  save(*engine, out, 1, odd_vectors(), 1);
  const auto reader = CheckpointReader::open(*engine, out + "/checkpoint-1");
  EXPECT_THROW(reader->verify([](std::uint64_t) { throw Interrupted("stop"); }), Interrupted);
  EXPECT_TRUE(holds(*reader, 1));
}

TEST(StateCheckpoint, IsReadFromSeveralThreads) {
  const auto engine = make_sim_engine({.latency_us_max = 20});
  save(*engine, out, 1, odd_vectors(), 9);
  const auto reader = CheckpointReader::open(*engine, out + "/checkpoint-1");
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] { EXPECT_TRUE(holds(*reader, 9, {.world = 1 + i})); });
}

TEST(StateCheckpoint, IsWrittenFromSeveralThreads) {
  const auto engine = make_sim_engine({.latency_us_max = 20});
  const auto writer = CheckpointWriter::open(*engine, out, 1, odd_vectors(), true);
  const Cut cut{.world = 4, .tile_elements = norm_chunk_elements};
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < 4; ++rank)
      threads.emplace_back([&, rank] { write_rank(*writer, odd_vectors(), 2, cut, rank); });
  }
  const std::uint64_t bytes = writer->commit(writer->finish(), note_of_step(1));
  EXPECT_TRUE(is_good(*engine, out + "/checkpoint-1", 2));
  EXPECT_EQ(bytes, CheckpointReader::open(*engine, out + "/checkpoint-1")->info().bytes);
}

// As three processes that share a file system do: each with an engine of its own.
TEST(StateCheckpoint, IsWrittenByTheWritersOfSeveralProcesses) {
  for (const std::string name : {"threads", "auto"}) {
    const TempDirectory directory;
    const Cut cut{.world = 3, .tile_elements = norm_chunk_elements};
    std::vector<std::unique_ptr<IoEngine>> engines;
    std::vector<std::unique_ptr<CheckpointWriter>> writers;
    for (int rank = 0; rank < 3; ++rank) {
      engines.push_back(make_io_engine(name, {}));
      writers.push_back(
          CheckpointWriter::open(*engines.back(), directory.path(), 4, odd_vectors(), rank == 0));
    }
    {
      std::vector<std::jthread> threads;
      for (int rank = 0; rank < 3; ++rank)
        threads.emplace_back([&, rank] {
          write_rank(*writers[static_cast<std::size_t>(rank)], odd_vectors(), 6, cut, rank);
        });
    }
    std::vector<StatePiece> all;
    for (const auto& writer : writers)
      for (const StatePiece& piece : writer->finish()) all.push_back(piece);
    writers[0]->commit(all, note_of_step(4));
    writers.clear();
    EXPECT_TRUE(is_good(*engines[1], directory.file("checkpoint-4"), 6));
    EXPECT_THAT(posix_file_system().list(directory.path()), ElementsAre("checkpoint-4"));
  }
}

TEST(StateCheckpoint, OfAWriterThatDoesNotCreateNeedsTheFiles) {
  const auto engine = make_sim_engine({});
  EXPECT_THAT(
      error_of<Error>([&] { CheckpointWriter::open(*engine, out, 1, odd_vectors(), false); }),
      HasSubstr("00000-master.bin is missing"));
}

TEST(StateCheckpoint, ThatIsNotCommittedGoesAway) {
  const auto engine = make_sim_engine({});
  save(*engine, out, 1, odd_vectors(), 1);
  {
    const auto writer = CheckpointWriter::open(*engine, out, 2, odd_vectors(), true);
    write_rank(*writer, odd_vectors(), 2, {}, 0);
    EXPECT_THAT(engine->file_system().list(out),
                ElementsAre("checkpoint-1", "checkpoint-2.partial"));
  }
  EXPECT_THAT(engine->file_system().list(out), ElementsAre("checkpoint-1"));
}

TEST(StateCheckpoint, OfAStepThatIsSavedAgainReplacesTheOldOne) {
  const auto engine = make_sim_engine({});
  save(*engine, out, 1, odd_vectors(), 1);
  save(*engine, out, 1, {odd_vectors()[0]}, 2);
  EXPECT_TRUE(is_good(*engine, out + "/checkpoint-1", 2));
  EXPECT_THAT(engine->file_system().list(out), ElementsAre("checkpoint-1"));
}

TEST(StateCheckpoint, DoesNotReplaceAFolderOfOthers) {
  const auto engine = make_sim_engine({});
  engine->file_system().make_directory(out + "/checkpoint-1");
  engine->file_system().write_file(out + "/checkpoint-1/model.safetensors", {});
  EXPECT_THAT(error_of<ConfigError>([&] { save(*engine, out, 1, odd_vectors(), 1); }),
              HasSubstr("/out/checkpoint-1 is there and is no checkpoint of Strata"));
  EXPECT_TRUE(engine->file_system().exists(out + "/checkpoint-1/model.safetensors"));
}

TEST(StateCheckpoint, TakesThePlaceOfWhatARunThatDiedLeft) {
  const auto engine = make_sim_engine({});
  engine->file_system().make_directory(out + "/checkpoint-1.partial");
  engine->file_system().write_file(out + "/checkpoint-1.partial/00000-master.bin",
                                   std::vector<std::byte>(1 << 20));
  save(*engine, out, 1, odd_vectors(), 1);
  EXPECT_TRUE(is_good(*engine, out + "/checkpoint-1", 1));
}

// --- What commit() refuses

std::string refusal_of(std::vector<StatePiece> (*change)(std::vector<StatePiece>)) {
  const auto engine = make_sim_engine({});
  auto writer = CheckpointWriter::open(*engine, out, 1, odd_vectors(), true);
  write_rank(*writer, odd_vectors(), 1, {}, 0);
  const auto pieces = writer->finish();
  const std::string text =
      error_of<Error>([&] { writer->commit(change(pieces), note_of_step(1)); });
  writer.reset();
  EXPECT_THAT(engine->file_system().list(out), IsEmpty());
  return text;
}

TEST(StateCheckpointCommit, NamesElementsThatNobodyWrote) {
  EXPECT_THAT(refusal_of([](std::vector<StatePiece> pieces) {
                pieces.erase(pieces.begin());
                return pieces;
              }),
              HasSubstr("elements [0, 8192) of vector \"master/layers.3\" were written by nobody"));
  EXPECT_THAT(refusal_of([](std::vector<StatePiece> pieces) {
                pieces.pop_back();
                return pieces;
              }),
              HasSubstr("elements [0, 8192) of vector \"moment1/\" were written by nobody"));
  EXPECT_THAT(refusal_of([](std::vector<StatePiece> pieces) {
                pieces.erase(pieces.begin() + 1);
                return pieces;
              }),
              HasSubstr("elements [8192, 12305) of vector \"master/layers.3\" were written by"));
}

TEST(StateCheckpointCommit, NamesElementsThatTwoWrote) {
  EXPECT_THAT(refusal_of([](std::vector<StatePiece> pieces) {
                pieces.push_back(pieces[0]);
                pieces.back().count = 4096;
                return pieces;
              }),
              HasSubstr("of vector \"master/layers.3\" were written twice"));
}

TEST(StateCheckpointCommit, NamesAPieceThatDoesNotFit) {
  EXPECT_THAT(refusal_of([](std::vector<StatePiece> pieces) {
                pieces[1].count += 1;
                return pieces;
              }),
              HasSubstr("does not fit into the 12305 of vector \"master/layers.3\""));
}

TEST(StateCheckpointCommit, FindsWhatDoesNotComeBackAsWritten) {
  EXPECT_THAT(refusal_of([](std::vector<StatePiece> pieces) {
                pieces[0].checksum ^= 1;
                pieces[0].is_read_back = false;
                return pieces;
              }),
              AllOf(HasSubstr("checkpoint-1 was not saved"),
                    HasSubstr("what was written does not come back"),
                    HasSubstr("elements [0, 8192) of vector \"master/layers.3\"")));
}

TEST(StateCheckpointCommit, RefusesABlockNameThatIsNoUtf8) {
  const auto engine = make_sim_engine({});
  EXPECT_THAT(error_of<ConfigError>([&] {
                save(*engine, out, 1, {{Role::master, "\xff", DType::f32, 1}}, 1);
              }),
              HasSubstr("UTF-8"));
}

TEST(StateCheckpointCommit, RefusesWhatNobodyCouldRead) {
  const auto engine = make_sim_engine({});
  const StateVector vector = {Role::master, "a", DType::f32, 1};
  EXPECT_THAT(error_of<Error>([&] {
                save(*engine, out, 1, {vector, vector}, 1);
              }),
              HasSubstr("vector \"master/a\" is there twice"));
  const auto writer = CheckpointWriter::open(*engine, out, 1, {vector}, true);
  write_rank(*writer, {vector}, 1, {}, 0);
  const auto pieces = writer->finish();
  EXPECT_THAT(error_of<Error>([&] { writer->commit(pieces, {.step = 1, .skipped_steps = -1}); }),
              HasSubstr("'skipped_steps' is no whole number"));
}

TEST(StateCheckpointSpace, IsCheckedBeforeAnythingIsWritten) {
  const auto engine = make_sim_engine({.capacity_bytes = 6 * MiB});
  save(*engine, out, 1, odd_vectors(), 1);
  const std::vector<StateVector> large = {{Role::master, "a", DType::f32, 1 << 20}};
  try {
    CheckpointWriter::open(*engine, out, 2, large, true);
    FAIL() << "no error";
  } catch (const SystemError& error) {
    EXPECT_EQ(error.error_number(), ENOSPC);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("checkpoint-2 was not saved"),
                                    HasSubstr("in /out: it needs 8.00 MiB"), HasSubstr("are free"),
                                    HasSubstr("save_total_limit")));
  }
  EXPECT_THAT(engine->file_system().list(out), ElementsAre("checkpoint-1"));
}

}  // namespace
}  // namespace strata::testing
