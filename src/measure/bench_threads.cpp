#include "bench_threads.hpp"

#include <algorithm>
#include <numeric>

#include "strata/topology/topology.hpp"

namespace strata {
namespace {

bool knows_cores(const Topology& topology) {
  return std::ranges::any_of(topology.nodes, [](const NumaNode& n) { return !n.cores.empty(); });
}

std::vector<NodeThreads> placed(const Topology& topology, int num_threads) {
  if (!knows_cores(topology))
    return {{0, num_threads > 0 ? num_threads : topology.usable_cores, {}}};
  const CoreBinding binding = divide_cores(topology, {});
  return place_threads(topology, binding.ranks.front().update, num_threads);
}

// A refusal only means that the system places the threads.
void bind_to(const NodeThreads& node) {
  if (!node.cores.empty()) bind_current_thread(node.cores);
}

}  // namespace

BenchThreads::BenchThreads(int num_threads) : nodes_(placed(read_topology(), num_threads)) {
  bind_to(nodes_.front());
}

int BenchThreads::num_threads() const {
  const std::vector<int> counts = threads_of_node();
  return std::accumulate(counts.begin(), counts.end(), 0);
}

std::unique_ptr<Kernels> BenchThreads::make_kernels() const {
  CpuKernelsOptions options;
  options.threads_of_node = threads_of_node();
  options.on_thread_start = [nodes = nodes_](std::size_t node) { bind_to(nodes[node]); };
  return make_cpu_kernels(options);
}

std::unique_ptr<cpu::Parallel> BenchThreads::make_pool() const {
  return std::make_unique<cpu::Parallel>(
      threads_of_node(), [nodes = nodes_](std::size_t node) { bind_to(nodes[node]); });
}

std::vector<int> BenchThreads::threads_of_node() const {
  std::vector<int> counts;
  for (const NodeThreads& node : nodes_) counts.push_back(node.count);
  return counts;
}

}  // namespace strata
