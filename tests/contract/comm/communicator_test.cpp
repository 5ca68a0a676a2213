// What every Communicator promises, on ranks that are threads of this process, over several world
// sizes.

#include "strata/comm/communicator.hpp"

#include <atomic>

#include "contract/comm/communicator_job_checks.hpp"

namespace strata::testing {
namespace {

constexpr int worlds[] = {1, 2, 3, 5, 8};
constexpr int worlds_of_many[] = {2, 3, 8};

// Every rank on its own thread, until it is done.
template <typename Work>
void on_threads(std::vector<RankLinks> ranks, const Work& work) {
  std::vector<std::jthread> threads;
  for (RankLinks& rank : ranks)
    threads.emplace_back(
        [&work, rank = std::move(rank)]() mutable { expect_well([&] { work(std::move(rank)); }); });
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

TEST(LocalJobs, ReadNoMemoryThatAnAbortGaveBackHoweverItFalls) {
  const auto check = std::ranges::find(
      job_checks(), std::string("ReadsNoMemoryThatAnAbortGaveBack"), &JobCheck::name);
  ASSERT_NE(check, job_checks().end());
  for (int job = 0; job < 20; ++job) {
    LateReports reports;
    on_threads(make_local_ranks(3, options_of(*check, reports)),
               [&](RankLinks rank) { check->run(std::move(rank), reports); });
  }
}

TEST(LocalJobs, NameAllLateRanksAndLetTheWatchdogAbort) {
  std::vector<RankLinks> ranks;
  LateReports reports;
  ranks = make_local_ranks(3, {.late_s = 0.01, .on_late = [&](const std::string& report) {
                                 reports.add(report);
                                 EXPECT_EQ(ranks[1].data->failure(), "");
                                 ranks[1].data->abort("too late");
                               }});
  EXPECT_THAT(error_of_barrier(*ranks[0].control), ::testing::HasSubstr("too late"));
  ASSERT_EQ(reports.about("").size(), 1u);
  EXPECT_THAT(reports.about("").front(),
              ::testing::MatchesRegex("rank 1, rank 2 have not come to barrier for [0-9.]+ s"));
}

TEST(LocalJobs, TellNobodyOfLateRanksWhenNobodyAsks) {
  const std::vector<RankLinks> ranks = make_local_ranks(2, {.timeout_s = 0.03, .late_s = 0.01});
  EXPECT_THAT(error_of_barrier(*ranks[0].data), ::testing::HasSubstr("within 0.03 s"));
}

TEST(LocalJobs, KeepOneOfManyReasonsAtOnce) {
  const std::vector<RankLinks> ranks = make_local_ranks(2);
  std::vector<std::string> seen(8);
  {
    std::vector<std::jthread> aborters;
    for (std::size_t i = 0; i < seen.size(); ++i) {
      aborters.emplace_back([&, i] {
        ranks[i % 2].data->abort("reason " + std::to_string(i));
        seen[i] = ranks[i % 2].control->failure();
      });
    }
  }
  EXPECT_THAT(seen, ::testing::Each(ranks[0].data->failure()));
  EXPECT_THAT(ranks[0].data->failure(), ::testing::StartsWith("reason "));
}

TEST(LocalJobs, NeedAtLeastOneRank) { EXPECT_THROW(make_local_ranks(0), ConfigError); }

}  // namespace
}  // namespace strata::testing
