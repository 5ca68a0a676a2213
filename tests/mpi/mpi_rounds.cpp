// A job that does rounds of collectives until a process fails, as told. What mpi_fault_test runs
// under mpirun; exit status 1 where a rank ended with an Error.
//
//   mpi_rounds HOW PROCESS RANKS
//
// HOW process PROCESS ends in round 20, of RANKS ranks in each process: "well" all end there;
// "killed", "exits" without a word, "aborts" by its first rank.

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "strata/comm/launch.hpp"
#include "strata/comm/mpi.hpp"
#include "strata/comm/process_group.hpp"
#include "strata/core/error.hpp"
#include "strata/device/device.hpp"

namespace strata {
namespace {

constexpr int last_round = 20;
constexpr std::int64_t part = 300'000;  // messages too long to be sent before they are awaited

struct Role {
  std::string how;
  bool is_odd_process = false;
};

void end_as_told(const Role& role) {
  if (!role.is_odd_process) return;
  if (role.how == "killed") ::raise(SIGKILL);
  if (role.how == "exits") ::_exit(3);
  if (role.how == "aborts") throw Error("the disk is full");
}

TensorView view(std::vector<float>& values) {
  return {values.data(), DType::f32, {static_cast<std::int64_t>(values.size())}};
}

// Both lines are busy, as in a run: memory of one is given back while the other still waits.
void do_rounds(const Role& role, const RankLinks& rank) {
  const std::unique_ptr<Device> device = make_host_device({});
  const std::unique_ptr<Stream> stream = device->make_stream("comm");
  const auto world = static_cast<std::size_t>(rank.data->world());
  std::vector<float> full(part * world), shard(part);
  for (int round = 1; role.how != "well" || round <= last_round; ++round) {
    rank.data->reduce_scatter(view(full), view(shard), *stream);
    if (round == last_round) end_as_told(role);
    rank.data->all_gather(view(shard), view(full), *stream);
  }
}

void do_control_rounds(const Role& role, const RankLinks& rank) {
  const std::unique_ptr<Device> device = make_host_device({});
  const std::unique_ptr<Stream> stream = device->make_stream("control");
  std::vector<float> loss(3);
  for (int round = 1; role.how != "well" || round <= last_round; ++round)
    rank.control->all_reduce(view(loss), *stream);
}

// Whether the work ended well.
bool is_done(const std::string& who, const RankLinks& rank, const std::function<void()>& work) {
  try {
    work();
    return true;
  } catch (const Error& error) {
    rank.control->abort(who + ": " + error.what());
    std::cerr << who + " ends: " + error.what() + "\n" << std::flush;
  }
  return false;
}

bool run_rank(const Role& role, const RankLinks& rank) {
  const std::string who = "rank " + std::to_string(rank.data->rank());
  bool is_control_done = false;
  std::jthread control(
      [&] { is_control_done = is_done(who, rank, [&] { do_control_rounds(role, rank); }); });
  const bool is_data_done = is_done(who, rank, [&] { do_rounds(role, rank); });
  control.join();
  if (is_data_done && is_control_done) std::cerr << who + " is done\n" << std::flush;
  return is_data_done && is_control_done;
}

// Under which a process that MPI holds tells why it cannot end.
CommOptions options_of(const Launch& launch) {
  return {.timeout_s = 60, .on_late = [process = launch.process](const std::string& text) {
            std::cerr << "process " + std::to_string(process) + " tells: " + text + "\n"
                      << std::flush;
          }};
}

int run(const Role& role, MpiJob& job, ProcessGroup& group, int ranks_per_process) {
  std::atomic<int> num_failed = 0;
  std::vector<std::jthread> threads;
  for (RankLinks& rank : job.make_ranks(group, ranks_per_process, options_of(group.launch()))) {
    threads.emplace_back(
        [&, links = std::move(rank)] { num_failed += run_rank(role, links) ? 0 : 1; });
  }
  threads.clear();
  return num_failed == 0 ? 0 : 1;
}

int join_and_run(const std::string& how, int odd_process, int ranks_per_process) {
  const Launch launch = read_launch();
  const std::unique_ptr<MpiJob> job = MpiJob::start(launch);
  const std::unique_ptr<ProcessGroup> group = join_process_group(
      {.launch = launch, .agreement = how, .share_port = [&](std::uint16_t port) {
         return job->share_port(port);
       }});
  return run({how, launch.process == odd_process}, *job, *group, ranks_per_process);
}

}  // namespace
}  // namespace strata

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  try {
    return strata::join_and_run(argv[1], std::atoi(argv[2]), std::atoi(argv[3]));
  } catch (const strata::Error& error) {
    std::cerr << error.what() << std::endl;
    return 2;
  }
}
