#include "slurm_nodes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "strata/core/error.hpp"

namespace strata {
namespace {

ConfigError unreadable(std::string_view variable, std::string_view text, std::string_view form) {
  return ConfigError(fmt::format("{}={} is not in Slurm's form, such as {}", variable, text, form));
}

// The number at the front of `text`, which it leaves; -1 if there is none.
int take_number(std::string_view& text) {
  int number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return -1;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

bool take(std::string_view& text, std::string_view front) {
  if (!text.starts_with(front)) return false;
  text.remove_prefix(front.size());
  return true;
}

struct TaskRun {
  int tasks = -1, nodes = 1;
};

// "4(x2)" or "3" at the front; tasks < 0: neither.
TaskRun take_run(std::string_view& text) {
  TaskRun run{.tasks = take_number(text)};
  if (!take(text, "(x")) return run;
  run.nodes = take_number(text);
  if (run.nodes < 1 || !take(text, ")")) run.tasks = -1;
  return run;
}

}  // namespace

std::string first_slurm_host(std::string_view variable, std::string_view hosts) {
  constexpr std::string_view form = "node[03-05,9],gpu1";
  std::string host;
  std::string_view rest = hosts;
  while (!rest.empty() && rest.front() != ',') {
    const std::string_view plain = rest.substr(0, rest.find_first_of("[,"));
    host += plain;
    rest.remove_prefix(plain.size());
    if (!take(rest, "[")) continue;
    const std::string_view list = rest.substr(0, rest.find(']'));
    const std::string_view first = list.substr(0, list.find_first_of("-,"));
    const bool is_number = std::ranges::all_of(first, [](char c) { return c >= '0' && c <= '9'; });
    if (list.size() == rest.size() || first.empty() || !is_number)
      throw unreadable(variable, hosts, form);
    host += first;
    rest.remove_prefix(list.size() + 1);
  }
  if (host.empty() || host.find(']') != std::string::npos) throw unreadable(variable, hosts, form);
  return host;
}

int slurm_tasks_on_node(std::string_view variable, std::string_view tasks, int node) {
  std::string_view rest = tasks;
  std::int64_t num_nodes = 0;
  int found = -1, most = 0;
  do {
    const TaskRun run = take_run(rest);
    if (run.tasks < 0) throw unreadable(variable, tasks, "4(x2),3");
    if (node >= num_nodes && node < num_nodes + run.nodes) found = run.tasks;
    num_nodes += run.nodes;
    most = std::max(most, run.tasks);
  } while (take(rest, ","));
  if (!rest.empty()) throw unreadable(variable, tasks, "4(x2),3");
  if (node < 0) return most;
  if (found >= 0) return found;
  throw ConfigError(fmt::format("{}={} tells of {} hosts, but SLURM_NODEID is {}", variable, tasks,
                                num_nodes, node));
}

}  // namespace strata
