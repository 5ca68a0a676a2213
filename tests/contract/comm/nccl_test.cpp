// What every Communicator promises, over the fakes of NCCL and CUDA: in several world sizes, with
// sums in many chunks, and with no wait too few.

#include <algorithm>
#include <atomic>
#include <latch>

#include "contract/comm/communicator_job_checks.hpp"
#include "fake_nccl/nccl_ranks_of_test.hpp"
#include "support/unhurried.hpp"

namespace strata::testing {
namespace {

using ::testing::IsEmpty;

// Every rank on its own thread, over NCCL, until it is done.
template <typename Work>
void on_nccl(NcclMachine& machine, std::vector<RankLinks> ranks, const Work& work) {
  std::vector<std::jthread> threads;
  for (RankLinks& rank : ranks)
    threads.emplace_back([&, rank = std::move(rank)]() mutable {
      expect_well([&] {
        machine.join(rank);
        work(std::move(rank));
      });
    });
}

void expect_clean(NcclMachine& machine) {
  machine.end();
  EXPECT_THAT(machine.cuda().complaints(), IsEmpty());
  EXPECT_THAT(machine.nccl().complaints(), IsEmpty());
  EXPECT_THAT(machine.nccl().leaks(), IsEmpty());
  EXPECT_THAT(machine.cuda().leaks(), IsEmpty());
}

template <typename Check>
std::string nccl_name_of(const ::testing::TestParamInfo<std::tuple<int, Check>>& info) {
  return std::string(std::get<1>(info.param).name) + std::to_string(std::get<0>(info.param));
}

class NcclRanks : public ::testing::TestWithParam<std::tuple<int, LastingCheck>> {};

TEST_P(NcclRanks, KeepAPromise) {
  const auto [world, check] = GetParam();
  NcclMachine machine(world, {.nccl = {.seed = 3}, .cuda = {.seed = 4}});
  on_nccl(machine, make_local_ranks(world), [&](RankLinks rank) { check.run(rank); });
  expect_clean(machine);
}

INSTANTIATE_TEST_SUITE_P(Communicators, NcclRanks,
                         ::testing::Combine(::testing::Values(1, 2, 3, 5),
                                            ::testing::ValuesIn(lasting_checks())),
                         nccl_name_of<LastingCheck>);

class NcclJobs : public ::testing::TestWithParam<std::tuple<int, JobCheck>> {};

// Runs a check once all ranks have joined. Returns why they have not: they meet for that too.
std::string error_of_joining(int world, const JobCheck& check) {
  LateReports reports;
  NcclMachine machine(world, {.staging_bytes_per_rank = 1 << 16});
  std::latch have_tried(world);
  std::vector<std::string> errors(static_cast<std::size_t>(world));
  std::vector<std::jthread> threads;
  for (RankLinks& link : make_local_ranks(world, options_of(check, reports)))
    threads.emplace_back([&, rank = std::move(link)]() mutable {
      errors[static_cast<std::size_t>(rank.control->rank())] =
          error_of([&] { machine.join(rank); });
      have_tried.arrive_and_wait();
      if (errors == std::vector<std::string>(errors.size(), "no error"))
        expect_well([&] { check.run(std::move(rank), reports); });
    });
  threads.clear();
  expect_clean(machine);
  const auto failed = std::ranges::find_if(errors, [](auto& each) { return each != "no error"; });
  return failed == errors.end() ? "no error" : *failed;
}

TEST_P(NcclJobs, KeepAPromise) {
  const auto [world, check] = GetParam();
  JobCheck timed = check;
  const std::string error = unhurried(
      check.timeout_s,
      [&](double seconds) {
        timed.timeout_s = seconds;
        return error_of_joining(world, timed);
      },
      [](const std::string& why) { return why.find(" did not come to ") != std::string::npos; });
  EXPECT_EQ(error, "no error");
}

INSTANTIATE_TEST_SUITE_P(Communicators, NcclJobs,
                         ::testing::Combine(::testing::Values(2, 3),
                                            ::testing::ValuesIn(job_checks())),
                         nccl_name_of<JobCheck>);

}  // namespace
}  // namespace strata::testing
