#include "mpi_job_of_test.hpp"

#include <mpi.h>

#include <thread>
#include <utility>
#include <vector>

#include "strata/comm/launch.hpp"
#include "strata/comm/process_group.hpp"
#include "strata/core/error.hpp"

namespace strata::testing {
namespace {

std::unique_ptr<MpiJob> the_job;
Launch the_launch;

std::unique_ptr<ProcessGroup> join() {
  return join_process_group(
      {.launch = the_launch, .agreement = "a test of MPI", .share_port = [](std::uint16_t port) {
         return the_job->share_port(port);
       }});
}

// A process that is done with its ranks learns that those of another fail only as long as it is in
// their group.
void hear_how_others_end(ProcessGroup& group) {
  try {
    group.exchange("done");
  } catch (const Error&) {  // They failed, as the test wants.
  }
}

}  // namespace

void MpiJobOfTest::start() {
  the_launch = read_launch();
  the_job = MpiJob::start(the_launch);
}

void MpiJobOfTest::end() {
  the_job = nullptr;
  int is_ended = 0;
  MPI_Finalized(&is_ended);
  if (is_ended == 0) MPI_Finalize();
}

const Launch& MpiJobOfTest::launch() { return the_launch; }

void run_mpi_ranks(int ranks_per_process, const CommOptions& options,
                   const std::function<void(RankLinks)>& body) {
  const std::unique_ptr<ProcessGroup> group = join();
  std::vector<RankLinks> ranks = the_job->make_ranks(*group, ranks_per_process, options);
  std::vector<std::jthread> threads;
  for (RankLinks& rank : ranks)
    threads.emplace_back([&body, links = std::move(rank)]() mutable { body(std::move(links)); });
  threads.clear();
  hear_how_others_end(*group);
}

}  // namespace strata::testing
