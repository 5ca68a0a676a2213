#include "strata/comm/mpi.hpp"

#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <utility>

#include "mpi_communicator.hpp"
#include "mpi_endpoint.hpp"
#include "mpi_world.hpp"
#include "comm/patience.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

constexpr double start_s = 60;  // for what all processes do before they have a process group

void check_mpi(int code, const char* what) {
  if (code != MPI_SUCCESS) throw Error(fmt::format("{} failed with code {}", what, code));
}

// Waits without blocking in MPI, which would wait for a dead process for ever.
void wait_for_all(MPI_Request request, const std::string& what) {
  Patience patience;
  int is_done = 0;
  while (true) {
    check_mpi(MPI_Test(&request, &is_done, MPI_STATUS_IGNORE), "MPI_Test");
    if (is_done != 0) return;
    if (patience.waited_s() > start_s)
      throw Error(fmt::format("{}: not all processes came within {} s", what, start_s));
    patience.pause();
  }
}

// One set of ranks: what make_ranks() made. MPI may write to its endpoints as long as it runs.
struct RankSet {
  std::shared_ptr<MpiWorld> world;
  std::vector<std::shared_ptr<MpiEndpoint>> endpoints;

  bool is_over() const {
    return std::ranges::all_of(endpoints, [](const auto& end) { return end->is_over(); });
  }
};

class OpenMpiJob final : public MpiJob {
 public:
  explicit OpenMpiJob(const Launch& launch);
  ~OpenMpiJob() override;

  std::uint16_t share_port(std::uint16_t port) override;
  std::vector<RankLinks> make_ranks(ProcessGroup& group, int ranks_per_process,
                                    const CommOptions& options) override;

 private:
  MPI_Comm ranks_only() const;
  bool end_together();

  std::vector<std::unique_ptr<RankSet>> sets_;
};

void check_processes(const Launch& launch, int process, int num_processes) {
  if (num_processes != launch.num_processes) {
    throw ConfigError(fmt::format(
        "MPI knows {} processes and {} tells of {}: on hosts without GPUs start with mpirun, and "
        "give it the number of processes; torchrun starts no MPI",
        num_processes, launch.source.empty() ? "the launch" : launch.source, launch.num_processes));
  }
  if (process != launch.process) {
    throw ConfigError(
        fmt::format("MPI numbers this process {} and {} numbers it {}: unset the "
                    "variables of the launcher that is not used",
                    process, launch.source.empty() ? "the launch" : launch.source, launch.process));
  }
}

OpenMpiJob::OpenMpiJob(const Launch& launch) {
  int is_started = 0, threads = 0, process = 0, num_processes = 0;
  MPI_Initialized(&is_started);
  ensure(is_started == 0);
  check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &threads), "MPI_Init_thread");
  if (threads < MPI_THREAD_MULTIPLE)
    throw ConfigError(
        "this MPI serves one thread at a time, and ranks are threads: use one built "
        "with MPI_THREAD_MULTIPLE, as Open MPI is by default");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &process);
  MPI_Comm_size(MPI_COMM_WORLD, &num_processes);
  check_processes(launch, process, num_processes);
}

// After a failure MPI is left as it is: its end waits for all processes. So is what it may write
// to.
OpenMpiJob::~OpenMpiJob() {
  if (end_together()) {
    MPI_Finalize();
    return;
  }
  static auto* const left_behind = new std::vector<std::unique_ptr<RankSet>>;
  for (auto& set : sets_) {
    set->world->end_telling();
    left_behind->push_back(std::move(set));
  }
}

// Waits until the ranks of all processes have left, for as long as a collective would wait.
bool OpenMpiJob::end_together() {
  Patience patience;
  for (const auto& set : sets_) {
    while (!set->is_over()) {
      if (set->world->has_failed()) return false;
      if (patience.waited_s() > set->world->options().timeout_s) return false;
      patience.pause();
    }
  }
  return true;
}

std::uint16_t OpenMpiJob::share_port(std::uint16_t port) {
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Ibcast(&port, 1, MPI_UINT16_T, 0, MPI_COMM_WORLD, &request), "MPI_Ibcast");
  wait_for_all(request, "sharing the port of process 0");
  return port;
}

// Messages of these ranks are never taken for those of others.
MPI_Comm OpenMpiJob::ranks_only() const {
  MPI_Comm ranks = MPI_COMM_NULL;
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Comm_idup(MPI_COMM_WORLD, &ranks, &request), "MPI_Comm_idup");
  wait_for_all(request, "joining the ranks over MPI");
  return ranks;
}

std::vector<RankLinks> OpenMpiJob::make_ranks(ProcessGroup& group, int ranks_per_process,
                                              const CommOptions& options) {
  if (ranks_per_process < 1) throw ConfigError("a process needs at least one rank");
  auto set = std::make_unique<RankSet>();
  const auto world = set->world =
      std::make_shared<MpiWorld>(ranks_only(), ranks_per_process, options, group);
  std::vector<RankLinks> ranks;
  for (int thread = 0; thread < ranks_per_process; ++thread) {
    const auto line = [&](MpiLine which) {
      set->endpoints.push_back(
          std::make_shared<MpiEndpoint>(world, which, world->first_rank() + thread));
      return make_mpi_communicator(set->endpoints.back());
    };
    ranks.push_back({line(MpiLine::data), line(MpiLine::control)});
  }
  group.on_failure([world](const std::string& reason) { world->hear_of(reason); });
  sets_.push_back(std::move(set));
  return ranks;
}

}  // namespace

bool has_mpi() { return true; }

std::unique_ptr<MpiJob> MpiJob::start(const Launch& launch) {
  return std::make_unique<OpenMpiJob>(launch);
}

}  // namespace strata
