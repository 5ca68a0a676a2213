// Ranks over MPI keep what every Communicator promises, and give the bits of ranks that are
// threads of one process. Every process runs these tests in step.

#include <cstring>
#include <mutex>
#include <thread>

#include "contract/comm/communicator_checks.hpp"
#include "comm/meeting.hpp"
#include "contract/comm/communicator_job_checks.hpp"
#include "mpi_job_of_test.hpp"

namespace strata::testing {
namespace {

const auto ranks_per_process = ::testing::Values(1, 2);

template <typename Check>
std::string name_of(const ::testing::TestParamInfo<std::tuple<Check, int>>& info) {
  const auto& [check, ranks] = info.param;
  return check.name + std::to_string(ranks) + "RanksPerProcess";
}

class MpiLastingContract : public ::testing::TestWithParam<std::tuple<LastingCheck, int>> {};

TEST_P(MpiLastingContract, Holds) {
  const auto& [check, ranks] = GetParam();
  run_mpi_ranks(ranks, {.timeout_s = 60}, [&](RankLinks rank) { check.run(rank); });
}

INSTANTIATE_TEST_SUITE_P(Mpi, MpiLastingContract,
                         ::testing::Combine(::testing::ValuesIn(lasting_checks()),
                                            ranks_per_process),
                         name_of<LastingCheck>);

class MpiJobContract : public ::testing::TestWithParam<std::tuple<JobCheck, int>> {};

TEST_P(MpiJobContract, Holds) {
  const auto& [check, ranks] = GetParam();
  LateReports reports;
  run_mpi_ranks(ranks, options_of(check, reports),
                [&](RankLinks rank) { check.run(std::move(rank), reports); });
}

INSTANTIATE_TEST_SUITE_P(Mpi, MpiJobContract,
                         ::testing::Combine(::testing::ValuesIn(job_checks()), ranks_per_process),
                         name_of<JobCheck>);

// Where another carrier brings the values, MPI brings the ranks together.
class MpiMeetings : public ::testing::TestWithParam<int> {};

TEST_P(MpiMeetings, GoOnBetweenCollectivesOfTheLine) {
  run_mpi_ranks(GetParam(), {.timeout_s = 60}, [&](RankLinks rank) {
    auto& meeting = dynamic_cast<Meeting&>(*rank.data);
    LazyStream stream;
    for (int round = 0; round < 20; ++round) {
      expect_well([&] { meeting.meet({Collective::all_gather, DType::bf16, round}); });
      if (round % 5 == 0) expect_well([&] { rank.data->barrier(stream); });
    }
    EXPECT_EQ(rank.data->failure(), "");
  });
}

TEST_P(MpiMeetings, NameTheRankThatComesWithAnotherCall) {
  run_mpi_ranks(GetParam(), {.timeout_s = 60}, [&](RankLinks rank) {
    auto& meeting = dynamic_cast<Meeting&>(*rank.data);
    const std::int64_t count = is_last(*rank.data) ? 6 : 5;
    const std::string error = error_of([&] {
      meeting.meet({Collective::send, DType::f32, count, 0, 1});
    });
    EXPECT_THAT(error,
                ::testing::HasSubstr(last_rank(*rank.data) +
                                     " called send of 6 f32 from rank 0 to rank 1 where rank "
                                     "0 called send of 5 f32 from rank 0 to rank 1"));
  });
}

TEST_P(MpiMeetings, EndWhenARankHasLeftThoughItsEndOfTheLineLives) {
  run_mpi_ranks(GetParam(), {.timeout_s = 60}, [&](RankLinks rank) {
    auto& meeting = dynamic_cast<Meeting&>(*rank.data);
    if (is_last(*rank.data)) {
      meeting.leave();
      EXPECT_TRUE(comes_true([&] { return !rank.data->failure().empty(); }));
      return;
    }
    EXPECT_THAT(error_of([&] { meeting.meet({}); }),
                ::testing::HasSubstr(last_rank(*rank.data) + " has left"));
  });
}

INSTANTIATE_TEST_SUITE_P(Mpi, MpiMeetings, ranks_per_process);

using Bytes = std::vector<std::byte>;

template <typename T>
void append(Bytes& bytes, const std::vector<T>& values) {
  const auto more = std::as_bytes(std::span(values));
  bytes.insert(bytes.end(), more.begin(), more.end());
}

// Parts of doubles of more chunks than are under way at once, and a last one that is not whole.
constexpr std::size_t long_part = 100'003;

template <typename T>
void append_sums(Communicator& comm, Bytes& bytes) {
  LazyStream stream;
  for (const std::size_t count : {std::size_t{1}, std::size_t{999}, long_part}) {
    std::vector<T> full = values_of<T>(comm.rank(), count * static_cast<std::size_t>(comm.world()),
                                       1, ValueKind::special);
    std::vector<T> shard(count), gathered(full.size());
    comm.reduce_scatter(view_of(full), view_of(shard), stream);
    comm.all_gather(view_of(shard), view_of(gathered), stream);
    append(bytes, gathered);
    if constexpr (std::is_same_v<T, bfloat16>) continue;
    comm.all_reduce(view_of(full), stream);
    append(bytes, full);
  }
}

Bytes results_of(Communicator& comm) {
  Bytes bytes;
  append_sums<float>(comm, bytes);
  append_sums<double>(comm, bytes);
  append_sums<bfloat16>(comm, bytes);
  return bytes;
}

// Of rank 0; all ranks have gathered the same.
Bytes results_of_threads(int world) {
  Bytes results;
  std::vector<RankLinks> ranks = make_local_ranks(world);
  std::vector<std::jthread> threads;
  for (RankLinks& rank : ranks) {
    threads.emplace_back([&results, links = std::move(rank)] {
      Bytes bytes = results_of(*links.data);
      if (links.data->rank() == 0) results = std::move(bytes);
    });
  }
  threads.clear();
  return results;
}

class MpiBits : public ::testing::TestWithParam<int> {};

TEST_P(MpiBits, AreThoseOfThreadsOfOneProcess) {
  const Bytes expected = results_of_threads(MpiJobOfTest::launch().num_processes * GetParam());
  run_mpi_ranks(GetParam(), {.timeout_s = 60}, [&](RankLinks rank) {
    EXPECT_TRUE(results_of(*rank.data) == expected) << "rank " << rank.data->rank();
  });
}

INSTANTIATE_TEST_SUITE_P(Mpi, MpiBits, ranks_per_process);

}  // namespace
}  // namespace strata::testing
