#include "mpi_job_of_test.hpp"

#include <mpi.h>

#include <thread>
#include <utility>
#include <vector>

#include "strata/comm/launch.hpp"
#include "strata/comm/process_group.hpp"

namespace strata::testing {
namespace {

std::unique_ptr<MpiJob> the_job;
Launch the_launch;

struct FakeGroup final : ProcessGroup {
  const Launch& launch() const override { return the_launch; }
  std::vector<std::string> exchange(const std::string& t) override { return {t}; }
  void on_failure(std::function<void(const std::string&)>) override {}
  void fail(const std::string&) noexcept override {}
};
std::unique_ptr<ProcessGroup> join() {
  return std::make_unique<FakeGroup>();
#if 0
  return join_process_group({.launch = the_launch,
                             .agreement = "a test of MPI",
                             .share_port = [](std::uint16_t port) {
                               return the_job->share_port(port);
                             }});
#endif
}

}  // namespace

void MpiJobOfTest::start() {
  the_launch.process = atoi(getenv("OMPI_COMM_WORLD_RANK"));
  the_launch.num_processes = atoi(getenv("OMPI_COMM_WORLD_SIZE"));
  the_job = MpiJob::start(the_launch);
}

void MpiJobOfTest::end() {
  the_job = nullptr;
  int is_ended = 0;
  MPI_Finalized(&is_ended);
  if (is_ended == 0) MPI_Finalize();
}

MpiJob& MpiJobOfTest::job() { return *the_job; }
const Launch& MpiJobOfTest::launch() { return the_launch; }

void run_mpi_ranks(int ranks_per_process, const CommOptions& options,
                   const std::function<void(RankLinks)>& body) {
  const std::unique_ptr<ProcessGroup> group = join();
  std::vector<RankLinks> ranks = the_job->make_ranks(*group, ranks_per_process, options);
  std::vector<std::jthread> threads;
  for (RankLinks& rank : ranks)
    threads.emplace_back([&body, links = std::move(rank)]() mutable { body(std::move(links)); });
}

}  // namespace strata::testing
