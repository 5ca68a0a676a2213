#include "strata/train/job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <sstream>

#include "strata/core/error.hpp"

namespace strata {
namespace {

// Device, host, then each drive, in bytes.
using LimitNumbers = std::vector<std::uint64_t>;

LimitNumbers numbers_of(const TierLimits& limits) {
  LimitNumbers numbers{limits.device_bytes, limits.host_bytes};
  numbers.insert(numbers.end(), limits.drive_bytes.begin(), limits.drive_bytes.end());
  return numbers;
}

std::string text_of(const LimitNumbers& numbers) {
  std::ostringstream text;
  for (const std::uint64_t number : numbers) text << number << ' ';
  return text.str();
}

LimitNumbers read_numbers(const std::string& text) {
  std::istringstream stream(text);
  LimitNumbers numbers;
  for (std::uint64_t number = 0; stream >> number;) numbers.push_back(number);
  return numbers;
}

void take_least(LimitNumbers& least, const LimitNumbers& others) {
  if (others.size() != least.size())
    throw Error("the processes of this job see different numbers of drives");
  std::ranges::transform(least, others, least.begin(),
                         [](std::uint64_t a, std::uint64_t b) { return std::min(a, b); });
}

}  // namespace

Job::Job(const Launch& launch, const JobOptions& options)
    : launch_(launch), ranks_per_process_(options.ranks) {
  if (launch.is_alone()) {
    ranks_ = make_local_ranks(options.ranks, options.comm);
    return;
  }
  if (!has_mpi())
    throw ConfigError(fmt::format(
        "{} tells of {} processes, but this build of Strata has no MPI to carry between them: "
        "install OpenMPI and build again, or use `ranks` to run them as threads of one process",
        launch.source, launch.num_processes));
  mpi_ = MpiJob::start(launch);
  ProcessGroupOptions joining;
  joining.launch = launch;
  joining.agreement = options.agreement;
  joining.share_port = [this](std::uint16_t port) { return mpi_->share_port(port); };
  group_ = join_process_group(joining);
  ranks_ = mpi_->make_ranks(*group_, options.ranks, options.comm);
}

Job::~Job() = default;

RankPlace Job::place(int thread) const {
  return {launch_.process * ranks_per_process_ + thread, world(),
          launch_.local_process * ranks_per_process_ + thread, num_host_ranks()};
}

std::string Job::describe() const {
  if (launch_.is_alone()) return fmt::format("{} as threads of one process", world());
  return fmt::format("{} in {} processes of {} ({}), joined by MPI", world(), launch_.num_processes,
                     ranks_per_process_, launch_.source);
}

TierLimits Job::agree(const TierLimits& limits) {
  if (group_ == nullptr) return limits;
  LimitNumbers least = numbers_of(limits);
  for (const std::string& text : group_->exchange(text_of(least)))
    take_least(least, read_numbers(text));
  TierLimits agreed = limits;
  agreed.device_bytes = least[0];
  agreed.host_bytes = least[1];
  std::copy(least.begin() + 2, least.end(), agreed.drive_bytes.begin());
  return agreed;
}

std::vector<std::string> Job::exchange(const std::string& own) {
  return group_ == nullptr ? std::vector{own} : group_->exchange(own);
}

void Job::check_alike(const std::string& what, const std::string& own) {
  if (group_ == nullptr) return;
  const std::vector<std::string> said = group_->exchange(own);
  for (std::size_t process = 0; process < said.size(); ++process) {
    if (said[process] == said.front()) continue;
    throw Error(fmt::format("{}: process 0 has {}, process {} has {}", what, said.front(), process,
                            said[process]));
  }
}

int Job::guard(const std::function<int()>& work) {
  try {
    const int result = work();
    // Until all are here: who leaves first would not hear that another failed.
    if (group_ != nullptr) group_->exchange("done");
    return result;
  } catch (const std::exception& error) {
    if (group_ != nullptr)
      group_->fail(fmt::format("process {}: {}", launch_.process, error.what()));
    throw;
  }
}

}  // namespace strata
