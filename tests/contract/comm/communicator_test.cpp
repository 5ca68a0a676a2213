// What every Communicator promises, on ranks that are threads of this process, over several world
// sizes.

#include "strata/comm/communicator.hpp"

#include <atomic>

#include "contract/comm/communicator_job_checks.hpp"

namespace strata::testing {
namespace {

constexpr int worlds[] = {1, 2, 3, 5, 8};
constexpr int worlds_of_many[] = {2, 3, 8};

// Every rank on its own thread.
template <typename Work>
void on_threads(std::vector<RankLinks> ranks, const Work& work) {
  std::vector<std::jthread> threads;
  for (RankLinks& rank : ranks)
    threads.emplace_back([&work, rank = std::move(rank)]() mutable { work(std::move(rank)); });
}

template <typename Check>
std::string name_of(const ::testing::TestParamInfo<std::tuple<int, Check>>& info) {
  return std::string(std::get<1>(info.param).name) + std::to_string(std::get<0>(info.param));
}

class LocalRanks : public ::testing::TestWithParam<std::tuple<int, LastingCheck>> {};

TEST_P(LocalRanks, KeepAPromise) {
  const auto [world, check] = GetParam();
  on_threads(make_local_ranks(world), [&](RankLinks rank) { check.run(rank); });
}

INSTANTIATE_TEST_SUITE_P(Communicators, LocalRanks,
                         ::testing::Combine(::testing::ValuesIn(worlds),
                                            ::testing::ValuesIn(lasting_checks())),
                         name_of<LastingCheck>);

class LocalJob : public ::testing::TestWithParam<std::tuple<int, JobCheck>> {};

TEST_P(LocalJob, KeepsAPromise) {
  const auto [world, check] = GetParam();
  LateReports reports;
  on_threads(make_local_ranks(world, options_of(check, reports)),
             [&](RankLinks rank) { check.run(std::move(rank), reports); });
}

INSTANTIATE_TEST_SUITE_P(Communicators, LocalJob,
                         ::testing::Combine(::testing::ValuesIn(worlds_of_many),
                                            ::testing::ValuesIn(job_checks())),
                         name_of<JobCheck>);

TEST(LocalJobs, RunAllLastingChecksInARow) {
  on_threads(make_local_ranks(3), [](RankLinks rank) {
    for (const LastingCheck& check : lasting_checks()) check.run(rank);
  });
}

TEST(LocalJobs, HoldABarrierUntilAllRanksCame) {
  for (const int world : worlds) {
    std::atomic<int> came = 0;
    on_threads(make_local_ranks(world), [&](RankLinks rank) {
      LazyStream stream;
      for (int round = 1; round <= 50; ++round) {
        ++came;
        rank.data->barrier(stream);
        EXPECT_EQ(came.load(), round * world);
        rank.data->barrier(stream);
      }
    });
  }
}

TEST(LocalJobs, LetARankLeaveUntilItIsMissed) {
  std::vector<RankLinks> ranks = make_local_ranks(2);
  ranks.pop_back();
  EXPECT_EQ(ranks.front().data->failure(), "");
  EXPECT_THAT(error_of_barrier(*ranks.front().control), ::testing::HasSubstr("rank 1 has left"));
  EXPECT_THAT(ranks.front().data->failure(), ::testing::HasSubstr("rank 1 has left"));
}

TEST(LocalJobs, NeedAtLeastOneRank) { EXPECT_THROW(make_local_ranks(0), ConfigError); }

}  // namespace
}  // namespace strata::testing
