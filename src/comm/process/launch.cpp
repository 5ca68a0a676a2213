#include "strata/comm/launch.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "slurm_nodes.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

constexpr int processes_max = 65536, port_max = 65535;
// Slurm numbers the batch script, the interactive step and the like from here.
constexpr std::int64_t special_step_min = 0xfffffff0;

// A launcher's words for where a process is in its job.
struct LaunchWords {
  const char *source, *rank, *size, *local_rank, *local_size, *job;
};
constexpr LaunchWords torchrun_words{
    "torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "TORCHELASTIC_RUN_ID"};
constexpr LaunchWords open_mpi_words{"Open MPI",
                                     "OMPI_COMM_WORLD_RANK",
                                     "OMPI_COMM_WORLD_SIZE",
                                     "OMPI_COMM_WORLD_LOCAL_RANK",
                                     "OMPI_COMM_WORLD_LOCAL_SIZE",
                                     "PMIX_NAMESPACE"};

class LaunchReader {
 public:
  explicit LaunchReader(const Environment& environment) : environment_(environment) {}

  Launch read() const {
    Launch launch;
    if (has("RANK") || has("WORLD_SIZE"))
      launch = by_words(torchrun_words);
    else if (has("OMPI_COMM_WORLD_RANK") || has("OMPI_COMM_WORLD_SIZE"))
      launch = by_words(open_mpi_words);
    else if (is_slurm_step())
      launch = by_slurm();
    else
      return launch;
    if (has("MASTER_ADDR")) launch.address = text("MASTER_ADDR");
    launch.port = static_cast<std::uint16_t>(number("MASTER_PORT", 0, port_max).value_or(0));
    if (launch.source == torchrun_words.source) avoid_agent_port(launch);
    return launch;
  }

 private:
  std::string text(const char* name) const {
    const char* value = environment_(name);
    return value == nullptr ? "" : value;
  }
  bool has(const char* name) const { return !text(name).empty(); }

  // Nothing when the variable is not set.
  std::optional<std::int64_t> number(const char* name, std::int64_t least,
                                     std::int64_t most) const {
    const std::string value = text(name);
    if (value.empty()) return std::nullopt;
    std::int64_t result = 0;
    const char* end = value.data() + value.size();
    const auto [stop, error] = std::from_chars(value.data(), end, result);
    if (error != std::errc() || stop != end || result < least || result > most)
      throw ConfigError(
          fmt::format("{}={} is no whole number from {} to {}", name, value, least, most));
    return result;
  }

  int needed(const char* name, const char* present) const {
    const auto value = number(name, 0, processes_max);
    if (value) return static_cast<int>(*value);
    throw ConfigError(fmt::format("{} is set but {} is not: a process needs both", present, name));
  }

  // A number of processes is at least 1, and beyond the number of this one.
  void check_within(const char* rank_name, int rank, const char* size_name, int size) const {
    if (rank < size) return;
    throw ConfigError(fmt::format("{}={} is not below {}={}: processes are numbered from 0",
                                  rank_name, rank, size_name, size));
  }

  Launch by_words(const LaunchWords& words) const {
    Launch launch{.process = needed(words.rank, words.size),
                  .num_processes = needed(words.size, words.rank),
                  .source = words.source,
                  .job = text(words.job)};
    check_within(words.rank, launch.process, words.size, launch.num_processes);
    const auto local_size = number(words.local_size, 1, processes_max);
    launch.num_local_processes = static_cast<int>(local_size.value_or(launch.num_processes));
    if (launch.num_local_processes == launch.num_processes && !has(words.local_rank))
      launch.local_process = launch.process;
    else if (launch.num_local_processes > 1 || has(words.local_rank))
      launch.local_process = needed(words.local_rank, words.local_size);
    check_local(launch, words.size, words.local_rank, words.local_size);
    return launch;
  }

  void check_local(const Launch& launch, const char* size, const char* local_rank,
                   const char* local_size) const {
    if (launch.num_local_processes > launch.num_processes)
      throw ConfigError(
          fmt::format("{}={} is more than {}={}: a host has only processes of the job", local_size,
                      launch.num_local_processes, size, launch.num_processes));
    check_within(local_rank, launch.local_process, local_size, launch.num_local_processes);
  }

  bool is_slurm_step() const {
    const auto step = number("SLURM_STEP_ID", 0, 0xffffffff);
    return step && *step < special_step_min && has("SLURM_STEP_NUM_TASKS");
  }

  Launch by_slurm() const {
    Launch launch{.process = needed("SLURM_PROCID", "SLURM_STEP_ID"),
                  .num_processes = needed("SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID"),
                  .source = "Slurm",
                  .job = text("SLURM_JOB_ID") + "." + text("SLURM_STEP_ID")};
    check_within("SLURM_PROCID", launch.process, "SLURM_STEP_NUM_TASKS", launch.num_processes);
    constexpr const char* per_node = "SLURM_STEP_TASKS_PER_NODE";
    const int node = static_cast<int>(number("SLURM_NODEID", 0, processes_max).value_or(-1));
    launch.num_local_processes =
        has(per_node) ? slurm_tasks_on_node(per_node, text(per_node), node) : launch.num_processes;
    launch.local_process = needed("SLURM_LOCALID", "SLURM_STEP_ID");
    check_local(launch, "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", per_node);
    if (has("SLURM_STEP_NODELIST"))
      launch.address = first_slurm_host("SLURM_STEP_NODELIST", text("SLURM_STEP_NODELIST"));
    return launch;
  }

  // The agent's store listens on MASTER_PORT, so process 0 cannot.
  void avoid_agent_port(Launch& launch) const {
    if (text("TORCHELASTIC_USE_AGENT_STORE") != "True" || launch.port == 0) return;
    launch.port =
        static_cast<std::uint16_t>(launch.port == port_max ? port_max - 1 : launch.port + 1);
  }

  const Environment& environment_;
};

}  // namespace

Launch read_launch(const Environment& environment) { return LaunchReader(environment).read(); }

Launch read_launch() {
  return read_launch([](const char* name) { return std::getenv(name); });
}

}  // namespace strata
