#pragma once
// Groups whose processes are threads of this one, on ports of the system's choice.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "strata/comm/process_group.hpp"
#include "strata/core/error.hpp"

namespace strata::testing {

// How long a test waits for what must come before it calls it lost.
inline constexpr std::chrono::seconds patience{60};

// Brings process 0's port to the others, and to the test.
class PortBox {
 public:
  std::function<std::uint16_t(std::uint16_t)> sharer(int process) {
    return [this, process](std::uint16_t port) {
      if (process == 0) promise_.set_value(port);
      return port_.get();
    };
  }
  std::uint16_t port() const { return port_.get(); }

 private:
  std::promise<std::uint16_t> promise_;
  std::shared_future<std::uint16_t> port_ = promise_.get_future().share();
};

// Enough time for all that goes well; tests of what does not shorten it.
inline ProcessGroupOptions group_options(int process, int num_processes) {
  ProcessGroupOptions options;
  options.launch.process = options.launch.local_process = process;
  options.launch.num_processes = options.launch.num_local_processes = num_processes;
  options.join_s = options.hello_s = options.silent_s = 60;
  options.heartbeat_s = 0.05;
  return options;
}

// What came of one process's wish to join.
struct JoinOutcome {
  std::unique_ptr<ProcessGroup> group = nullptr;
  std::string error = {};
  bool is_config_error = false;
};

inline JoinOutcome try_join(const ProcessGroupOptions& options) {
  try {
    return {.group = join_process_group(options)};
  } catch (const ConfigError& error) {
    return {.error = error.what(), .is_config_error = true};
  } catch (const Error& error) {
    return {.error = error.what()};
  }
}

inline std::future<JoinOutcome> start_join(const ProcessGroupOptions& options) {
  return std::async(std::launch::async, [options] { return try_join(options); });
}

using ChangeOptions = std::function<void(ProcessGroupOptions&)>;

// The processes of `present` out of `num_processes`, 0 among them.
inline std::vector<JoinOutcome> join_some(const std::vector<int>& present, int num_processes,
                                          const ChangeOptions& change = {}) {
  PortBox port;
  std::vector<std::future<JoinOutcome>> joins;
  for (int process : present) {
    ProcessGroupOptions options = group_options(process, num_processes);
    options.share_port = port.sharer(process);
    if (change) change(options);
    joins.push_back(start_join(options));
  }
  std::vector<JoinOutcome> outcomes;
  for (auto& join : joins) outcomes.push_back(join.get());
  return outcomes;
}

using Groups = std::vector<std::unique_ptr<ProcessGroup>>;

// All must join.
inline Groups join_all(int num_processes, const ChangeOptions& change = {}) {
  std::vector<int> all;
  for (int process = 0; process < num_processes; ++process) all.push_back(process);
  Groups groups;
  for (JoinOutcome& outcome : join_some(all, num_processes, change)) {
    if (!outcome.group) throw Error(outcome.error);
    groups.push_back(std::move(outcome.group));
  }
  return groups;
}

// What a group tells of a failure.
class FailureNote {
 public:
  explicit FailureNote(ProcessGroup& group) {
    group.on_failure([this](const std::string& reason) { reason_.set_value(reason); });
  }
  // The reason, or that none came in time.
  std::string wait() {
    if (future_.wait_for(patience) != std::future_status::ready) return "nothing was told";
    return future_.get();
  }

 private:
  std::promise<std::string> reason_;
  std::future<std::string> future_ = reason_.get_future();
};

// The error of an exchange, or "no error".
inline std::string exchange_error(ProcessGroup& group) {
  try {
    group.exchange("text");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace strata::testing
