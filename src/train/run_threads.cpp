#include "strata/train/run_threads.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace strata {
namespace {

int count_of(const std::vector<NodeThreads>& threads) {
  int count = 0;
  for (const NodeThreads& one : threads) count += one.count;
  return count;
}

std::string place_of(const NodeThreads& threads) {
  return fmt::format("core{} {}, node {}", threads.cores.size() == 1 ? "" : "s",
                     format_cores(threads.cores), threads.node);
}

// "2 (cores 0-1, node 0)" or "4 (2 on cores 0-1, node 0; 2 on cores 2-3, node 1)"
std::string places_of(const std::vector<NodeThreads>& threads) {
  std::string text;
  for (const NodeThreads& one : threads) {
    if (!text.empty()) text += "; ";
    text += threads.size() == 1 ? place_of(one) : fmt::format("{} on {}", one.count, place_of(one));
  }
  return fmt::format("{} ({})", count_of(threads), text);
}

std::string few_cores_warning(const std::string& pool, const std::string& limit) {
  return fmt::format("{} has one thread: this run may use no second core{}", pool,
                     limit.empty() ? "" : " (" + limit + ")");
}

std::string few_threads_warning(const std::string& pool, int count, std::size_t cores) {
  return fmt::format("{0} has {1} thread{2} for {3} cores; {0}_threads: 0 gives it one per core",
                     pool, count, count == 1 ? "" : "s", cores);
}

std::string many_threads_warning(const std::string& pool, int count, std::size_t cores) {
  return fmt::format(
      "{0} has {1} threads on {2} core{3}, where they take turns; {0}_threads: 0 "
      "gives it one per core",
      pool, count, cores, cores == 1 ? "" : "s");
}

// Empty when the number is sound.
std::string warning_of(const std::string& pool, int count, std::size_t cores,
                       const std::string& limit) {
  const auto threads = static_cast<std::size_t>(count);
  if (threads > cores) return many_threads_warning(pool, count, cores);
  if (cores < 2) return few_cores_warning(pool, limit);
  if (threads < 2 || 2 * threads < cores) return few_threads_warning(pool, count, cores);
  return "";
}

std::vector<NodeThreads> threads_on(const Topology& topology, const std::vector<int>& cores,
                                    int wanted) {
  return cores.empty() ? std::vector<NodeThreads>{} : place_threads(topology, cores, wanted);
}

}  // namespace

RunThreads::RunThreads(const Topology& topology, const RankCores& cores,
                       const ThreadsWanted& wanted, Bind bind)
    : compute_{"compute", cores.compute.size(),
               threads_on(topology, cores.compute, wanted.compute)},
      update_{"update", cores.update.size(), place_threads(topology, cores.update, wanted.update)},
      limit_(topology.note),
      has_far_memory_(topology.nodes.size() > 1),
      bind_(std::move(bind)) {}

CpuKernelsOptions RunThreads::compute_kernels() { return options_of(compute_); }
CpuKernelsOptions RunThreads::update_kernels() { return options_of(update_); }

CpuKernelsOptions RunThreads::options_of(const Pool& pool) {
  CpuKernelsOptions options;
  for (const NodeThreads& one : pool.threads) options.threads_of_node.push_back(one.count);
  options.on_thread_start = [this, &pool](std::size_t node) { this->bind(pool, node); };
  return options;
}

// A lane's thread is its pool's first.
void RunThreads::bind_lane(Lane lane) {
  if (lane == Lane::compute && !compute_.threads.empty()) bind(compute_, 0);
  if (lane == Lane::update) bind(update_, 0);
}

void RunThreads::bind(const Pool& pool, std::size_t node) {
  const std::string refusal = bind_(pool.threads[node].cores);
  if (refusal.empty()) return;
  const std::lock_guard lock(mutex_);
  refusals_.insert(refusal);
}

std::vector<std::string> RunThreads::lines() const {
  std::string first;
  std::vector<std::string> lines{""};
  for (const Pool* pool : {&compute_, &update_}) {
    if (pool->threads.empty()) continue;
    first +=
        fmt::format("{}{} {}", first.empty() ? "" : ", ", pool->name, places_of(pool->threads));
    const std::string warning =
        warning_of(pool->name, count_of(pool->threads), pool->num_cores, limit_);
    if (!warning.empty()) lines.push_back("warning  " + warning);
  }
  lines.front() = "threads  " + first;
  const std::lock_guard lock(mutex_);
  for (const std::string& refusal : refusals_)
    lines.push_back("warning  " + refusal + "; it runs where the system puts it");
  return lines;
}

}  // namespace strata
