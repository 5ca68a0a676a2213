// Ranks over the fake of NCCL, when a call fails, NCCL says that it failed, a collective hangs, a
// rank never joins, or the library is of no use: all ranks end, with one reason.

#include <gmock/gmock.h>

#include <atomic>

#include "contract/comm/communicator_job_checks.hpp"
#include "fake_nccl/nccl_ranks_of_test.hpp"
#include "src/comm/nccl/nccl_failure.hpp"
#include "support/unhurried.hpp"

namespace strata::testing {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int world = 3;

// One of each kind, and a sum of several chunks.
void collectives(Communicator& data) {
  CheckedCollectives check(data);
  check.all_gather<bfloat16>(33, 1);
  check.reduce_scatter<bfloat16>(7001, 2);
  check.all_reduce<double>(5, 3);
  check.broadcast<float>(9, 1, 4);
  check.send<float>(9, 0, 2, 5);
  check.barrier();
}

// Stands still, however long threads are not let run, until all ranks hang; then it flies.
class HangClock {
 public:
  void watch(const FakeNccl& nccl) { nccl_ = &nccl; }
  std::int64_t now_ns() {
    return nccl_ != nullptr && nccl_->is_hung() ? now_ns_ += 1'000'000'000 : now_ns_.load();
  }

 private:
  const FakeNccl* nccl_ = nullptr;
  std::atomic<std::int64_t> now_ns_ = 0;
};

struct JobRun {
  std::vector<std::string> errors;  // by rank; "no error"
  std::string failure;
  std::vector<std::string> complaints, leaks;
  std::uint64_t num_calls = 0, num_groups = 0;
};

JobRun run_job(
    NcclTestOptions options, const CommOptions& comm = {},
    const std::function<bool(int rank)>& joins = [](int) { return true; }) {
  HangClock clock;
  options.soon_s = 0.002;
  options.clock = [&] { return clock.now_ns(); };
  std::optional<NcclMachine> machine;
  JobRun run{std::vector<std::string>(world), "", {}, {}, 0, 0};
  std::vector<RankLinks> ranks = make_local_ranks(world, comm);
  const std::string error = error_of([&] { machine.emplace(world, options); });
  if (!machine) return {{error}, error, {}, {}, 0, 0};
  if (!options.nccl.tells_of_hang) clock.watch(machine->nccl());
  {
    std::vector<std::jthread> threads;
    for (RankLinks& rank : ranks)
      threads.emplace_back([&] {
        const auto index = static_cast<std::size_t>(rank.control->rank());
        if (!joins(rank.control->rank())) return;
        run.errors[index] = error_of([&] {
          machine->join(rank);
          collectives(*rank.data);
        });
        rank.data.reset();
      });
  }
  run.failure = ranks.front().control->failure();
  machine->end();
  run.num_calls = machine->nccl().num_calls(), run.num_groups = machine->nccl().num_groups();
  run.complaints = machine->cuda().complaints();
  for (const std::string& text : machine->nccl().complaints()) run.complaints.push_back(text);
  run.leaks = machine->nccl().leaks();
  for (const std::string& text : machine->cuda().leaks()) run.leaks.push_back(text);
  return run;
}

void expect_clean(const JobRun& run) {
  EXPECT_THAT(run.complaints, IsEmpty());
  EXPECT_THAT(run.leaks, IsEmpty());
}

TEST(NcclFaults, AreNoneInAJobThatEndsWell) {
  const JobRun run = run_job({});
  EXPECT_THAT(run.errors, Each("no error"));
  EXPECT_EQ(run.failure, "");
  EXPECT_GT(run.num_groups, 3u * world);
  expect_clean(run);
}

// Of a run in which a call failed: whether that ended any rank. What a rank had come to may have
// ended well before; what fails at the end, when ranks leave, is nobody's trouble.
bool ends_ranks(const JobRun& run) {
  expect_clean(run);
  if (run.failure.empty()) return false;
  EXPECT_THAT(run.failure, AllOf(::testing::StartsWith("rank "), HasSubstr("nccl"),
                                 HasSubstr("ncclSystemError (2)")));
  for (const std::string& error : run.errors)
    EXPECT_THAT(error, ::testing::AnyOf("no error", HasSubstr("ncclSystemError (2)")));
  return run.errors != std::vector<std::string>(world, "no error");
}

TEST(NcclFaults, EndAllRanksWhicheverCallFails) {
  const std::uint64_t num_calls = run_job({}).num_calls;
  // The first is of the process, before it has ranks.
  EXPECT_THAT(run_job({.nccl = {.failing_call = 0}}).failure, HasSubstr("ncclSystemError (2)"));
  std::size_t ended = 0;
  for (std::uint64_t call = 1; call < num_calls; call += call < 40 ? 1 : 5)
    ended += ends_ranks(run_job({.nccl = {.failing_call = call}})) ? 1u : 0u;
  EXPECT_GT(ended, 20u);
}

// How many are asked before the end is the machine's affair, but for those of ranks that join.
TEST(NcclFaults, EndAllRanksWhicheverQuestionFails) {
  for (std::uint64_t question = 0; question < 60; ++question) {
    const bool has_ended = ends_ranks(run_job({.nccl = {.failing_question = question}}));
    EXPECT_TRUE(has_ended || question >= world) << question;
  }
}

TEST(NcclFaults, EndAllRanksWhenNcclSaysThatItFailed) {
  const std::uint64_t groups = run_job({}).num_groups / world;
  for (std::uint64_t group = 0; group + 3 < groups; ++group) {
    const JobRun run =
        run_job({.nccl = {.hanging_rank = 1, .hanging_group = group, .tells_of_hang = true}});
    EXPECT_THAT(run.failure, HasSubstr("rank 1: ncclCommGetAsyncError: ncclRemoteError (6): remote "
                                       "process exited; the fake's last error"));
    EXPECT_THAT(run.errors, Each(HasSubstr(run.failure)));
    expect_clean(run);
  }
}

TEST(NcclFaults, EndAllRanksWhenACollectiveHangs) {
  const JobRun run = run_job({.nccl = {.hanging_rank = 2, .hanging_group = 1}});
  EXPECT_THAT(run.failure, AllOf(HasSubstr("reduce_scatter of 21003 bf16 did not end within 60 s"),
                                 HasSubstr("another rank's device")));
  EXPECT_THAT(run.errors, Each(HasSubstr(run.failure)));
  expect_clean(run);
}

TEST(NcclFaults, NameTheRankThatNeverJoins) {
  const JobRun run = unhurried(
      0.05,
      [](double seconds) {
        return run_job({}, {.timeout_s = seconds}, [](int rank) { return rank != 1; });
      },
      [](const JobRun& late) { return late.failure.find(", rank") != std::string::npos; });
  EXPECT_THAT(run.failure, ::testing::StartsWith("rank 1 did not come to all_gather of 1 i32"));
  for (const int rank : {0, 2})
    EXPECT_THAT(run.errors[static_cast<std::size_t>(rank)], HasSubstr(run.failure));
  expect_clean(run);
}

TEST(NcclFaults, RefuseALibraryThatIsTooOldOrOfAnotherMajor) {
  EXPECT_THAT(run_job({.nccl = {.version = 21701}}).failure,
              AllOf(HasSubstr("is 2.17.1"), HasSubstr("needs 2.18 or a newer 2.x")));
  EXPECT_THAT(run_job({.nccl = {.version = 2804}}).failure, HasSubstr("is 2.8.4"));
  EXPECT_THAT(run_job({.nccl = {.version = 30001}}).failure, HasSubstr("is 3.0.1"));
  EXPECT_EQ(run_job({.nccl = {.version = 21801}}).failure, "");
}

TEST(NcclFaults, RefuseMoreRanksThanASumHasTerms) {
  NcclMachine machine(2, {});
  std::vector<RankLinks> ranks = make_local_ranks(nccl_ranks_max + 1);
  EXPECT_THAT(error_of([&] { machine.join(ranks.front()); }), HasSubstr("at most 256"));
  EXPECT_THAT(ranks.back().data->failure(), HasSubstr("257 ranks are more"));
  EXPECT_NE(error_of_barrier(*ranks.front().data), "no error");
}

TEST(NcclFaults, TellOfTheLibraryWhatItIs) {
  FakeCuda cuda({});
  FakeNccl nccl(cuda, {}), old(cuda, {.version = 21701});
  EXPECT_EQ(nccl_facts(nccl).version, "2.28.9");
  EXPECT_EQ(nccl_facts(nccl).failure, "");
  EXPECT_EQ(nccl_facts(old).version, "");
  EXPECT_THAT(nccl_facts(old).failure, HasSubstr("2.17.1"));
}

TEST(NcclFaults, SayWhatToDoByTheirNumber) {
  FakeCuda cuda({});
  FakeNccl nccl(cuda, {});
  const auto said = [&](int status) {
    return nccl_failure(nccl, static_cast<NcclStatus>(status), "ncclCommInitRankConfig");
  };
  EXPECT_THAT(said(1), AllOf(HasSubstr("ncclUnhandledCudaError"), HasSubstr("offload.gpu_limit")));
  EXPECT_THAT(said(2), HasSubstr("/dev/shm"));
  EXPECT_THAT(said(5), AllOf(HasSubstr("ncclInvalidUsage"), HasSubstr("the same GPU")));
}

// Of this machine: there is one, or it is said why not.
TEST(NcclLibrary, IsThereOrMissedWithAReason) {
  const NcclFacts facts = read_nccl();
  EXPECT_NE(facts.version.empty(), facts.failure.empty());
  const std::string error = error_of([] { NcclJob::start(2); });
  EXPECT_EQ(error == "no error", facts.failure.empty()) << error;
  EXPECT_EQ(error_of([] { NcclJob::start(1); }), "no error");
}

}  // namespace
}  // namespace strata::testing
