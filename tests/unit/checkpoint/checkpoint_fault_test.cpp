// Every single operation of a save fails once, with a full disk's answer and with a failing drive's
// answer: an error always, which says what to do, and the last good checkpoint always stands.

#include <cerrno>
#include <ostream>

#include "support/one_fault_engine.hpp"
#include "unit/checkpoint/checkpoint_testing.hpp"
#include "unit/checkpoint/state_checkpoint_testing.hpp"

namespace strata::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSubsetOf;
using Lasting = OneFault::Lasting;

struct FaultCase {
  const char* name;
  int error_number;
  Lasting lasting;
  std::int64_t step;  // that is saved while 10 is there
};

void PrintTo(const FaultCase& one, std::ostream* stream) { *stream << one.name; }

class CheckpointFault : public ::testing::TestWithParam<FaultCase> {
 protected:
  using Engine = std::unique_ptr<OneFaultEngine>;

  static Engine engine_with_one() {
    auto engine = std::make_unique<OneFaultEngine>(make_sim_engine({.chunk_bytes = 8192}));
    save(*engine, out, 10, few_vectors(), 1, cut_into_tiles);
    return engine;
  }
  static std::uint64_t operations_of_a_save() {
    const Engine engine = engine_with_one();
    engine->fault().arm(~std::uint64_t{0}, 0, Lasting::once);
    save(*engine, out, GetParam().step, few_vectors(), 2, cut_into_tiles);
    return engine->fault().count();
  }
  // What a save says when its operation `at` fails; empty when it came to its end all the same.
  static std::string save_with_fault(OneFaultEngine& engine, std::uint64_t at) {
    engine.fault().arm(at, GetParam().error_number, GetParam().lasting);
    std::string said;
    try {
      save(engine, out, GetParam().step, few_vectors(), 2, cut_into_tiles);
    } catch (const SystemError& error) {
      EXPECT_EQ(error.error_number(), GetParam().error_number);
      said = error.what();
    }
    engine.fault().disarm();
    return said;
  }
  // The new one is there when it was saved; and may be, whole, when the drive went away for good
  // after its rename.
  static void check_what_stands(OneFaultEngine& engine, bool is_saved) {
    clear_unfinished_checkpoints(engine.file_system(), out);
    const auto steps = steps_in(engine.file_system(), out);
    const bool may_be_new = is_saved || GetParam().lasting == Lasting::from_then_on;
    const auto is_new = [&](const std::string& path) {
      return may_be_new && is_good(engine, path, 2);
    };
    if (GetParam().step == 10) {
      EXPECT_THAT(steps, ElementsAre(10));
      EXPECT_TRUE(is_new(out + "/checkpoint-10") || is_good(engine, out + "/checkpoint-10", 1));
      return;
    }
    EXPECT_THAT(steps, AllOf(Contains(10), IsSubsetOf({10, 20})));
    EXPECT_TRUE(is_good(engine, out + "/checkpoint-10", 1));
    EXPECT_TRUE(steps.size() == 1 ? !is_saved : is_new(out + "/checkpoint-20"));
  }
};

TEST_P(CheckpointFault, AtAnyOperationIsToldAndLeavesTheLastCheckpoint) {
  const std::uint64_t operations = operations_of_a_save();
  EXPECT_GT(operations, 30u);
  std::uint64_t num_passed = 0;
  for (std::uint64_t at = 0; at < operations; ++at) {
    SCOPED_TRACE("operation " + std::to_string(at) + " of " + std::to_string(operations));
    const Engine engine = engine_with_one();
    const std::string said = save_with_fault(*engine, at);
    if (!said.empty()) {
      EXPECT_THAT(said, AllOf(HasSubstr("was not saved, and earlier checkpoints are as they were"),
                              HasSubstr(out), HasSubstr("free"), HasSubstr("output_dir")));
    }
    num_passed += said.empty();
    check_what_stands(*engine, said.empty());
    save(*engine, out, 30, few_vectors(), 3, cut_into_tiles);
    EXPECT_TRUE(is_good(*engine, out + "/checkpoint-30", 3)) << "later saves are as good as ever";
    if (HasFailure()) return;
  }
  // Nothing but clearing away the checkpoint that was replaced may fail without a word: that is
  // left to clear_unfinished_checkpoints().
  EXPECT_LE(num_passed, GetParam().step == 10 ? 8u : 0u);
}

class CheckpointPassingFault : public CheckpointFault {};

TEST_P(CheckpointPassingFault, LeavesNothingBehind) {
  const std::uint64_t operations = operations_of_a_save();
  for (std::uint64_t at = 0; at < operations; ++at) {
    const Engine engine = engine_with_one();
    if (save_with_fault(*engine, at).empty()) continue;
    EXPECT_THAT(engine->file_system().list(out), ElementsAre("checkpoint-10")) << at;
    EXPECT_TRUE(is_good(*engine, out + "/checkpoint-10", 1)) << at;
  }
}

constexpr auto name_of = [](const auto& test) { return std::string(test.param.name); };
constexpr FaultCase full_disk = {"FullDisk", ENOSPC, Lasting::once, 20};
constexpr FaultCase drive_error = {"DriveError", EIO, Lasting::once, 20};
constexpr FaultCase same_step = {"DriveErrorInTheSameStep", EIO, Lasting::once, 10};

INSTANTIATE_TEST_SUITE_P(
    Cases, CheckpointFault,
    ::testing::Values(full_disk, drive_error, same_step,
                      FaultCase{"StaysFull", ENOSPC, Lasting::from_then_on, 20},
                      FaultCase{"DriveGone", EIO, Lasting::from_then_on, 20},
                      FaultCase{"DriveGoneInTheSameStep", EIO, Lasting::from_then_on, 10}),
    name_of);
INSTANTIATE_TEST_SUITE_P(Cases, CheckpointPassingFault,
                         ::testing::Values(full_disk, drive_error, same_step), name_of);

// The drive's own transfers, as the kernel makes them.
TEST(CheckpointTransferFault, IsToldWhereverItIs) {
  for (const int error_number : {EIO, ENOSPC}) {
    bool ended = false;
    for (std::uint64_t at = 0; !ended; ++at) {
      ASSERT_LT(at, 1000u);
      const auto engine = make_sim_engine(
          {.faults = {{.at_operation = at, .error_number = error_number}}, .chunk_bytes = 8192});
      try {
        save(*engine, out, 10, few_vectors(), 1, cut_into_tiles);
        ended = at > 10;
        EXPECT_TRUE(ended);
      } catch (const SystemError& error) {
        EXPECT_EQ(error.error_number(), error_number);
        EXPECT_THAT(error.what(), AllOf(HasSubstr("/out/checkpoint-10.partial/"),
                                        HasSubstr("checkpoint-10 was not saved")));
        EXPECT_TRUE(engine->file_system().list(out).empty());
      }
    }
  }
}

TEST(CheckpointTransferFault, OfAShortTransferIsNone) {
  for (std::uint64_t at = 0; at < 20; ++at) {
    const auto engine = make_sim_engine({.faults = {{.at_operation = at, .error_number = 0}}});
    save(*engine, out, 10, few_vectors(), 1, cut_into_tiles);
    EXPECT_TRUE(is_good(*engine, out + "/checkpoint-10", 1)) << at;
  }
}

// Removing is many operations: wherever it stops, what is listed is whole, and the newest is there.
TEST(CheckpointRemovalFault, LeavesOnlyWholeCheckpoints) {
  bool ended = false;
  for (std::uint64_t at = 0; !ended; ++at) {
    ASSERT_LT(at, 1000u);
    OneFaultEngine engine(make_sim_engine({}));
    for (const std::int64_t step : {10, 20, 30})
      save(engine, out, step, few_vectors(), 1, cut_into_tiles);
    engine.fault().arm(at, EIO, Lasting::once);
    try {
      remove_old_checkpoints(engine.file_system(), out, 1, 30);
      ended = true;
    } catch (const SystemError&) {
    }
    engine.fault().disarm();
    const auto steps = steps_in(engine.file_system(), out);
    EXPECT_THAT(steps, AllOf(Contains(30), IsSubsetOf({10, 20, 30})));
    for (const std::int64_t step : steps)
      EXPECT_TRUE(is_good(engine, out + "/checkpoint-" + std::to_string(step), 1));
    clear_unfinished_checkpoints(engine.file_system(), out);
    EXPECT_EQ(engine.file_system().list(out).size(), steps.size());
    EXPECT_TRUE(!ended || at > 20u);
  }
}

}  // namespace
}  // namespace strata::testing
