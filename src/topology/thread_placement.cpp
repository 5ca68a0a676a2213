#include <algorithm>
#include <cstddef>
#include <iterator>

#include "strata/core/error.hpp"
#include "strata/topology/binding.hpp"

namespace strata {
namespace {

// In the node's order.
std::vector<int> common_cores(const NumaNode& node, std::span<const int> cores) {
  std::vector<int> common;
  std::ranges::copy_if(node.cores, std::back_inserter(common),
                       [&](int core) { return std::ranges::find(cores, core) != cores.end(); });
  return common;
}

bool quota_bites(const Topology& topology) {
  std::size_t count = 0;
  for (const NumaNode& node : topology.nodes) count += node.cores.size();
  return static_cast<std::size_t>(std::max(1, topology.usable_cores)) < count;
}

struct NodeCores {
  const NumaNode* node;
  std::vector<int> cores;
};

std::vector<NodeCores> by_node(const Topology& topology, std::span<const int> cores) {
  std::vector<NodeCores> found;
  for (const NumaNode& node : topology.nodes) {
    std::vector<int> common = common_cores(node, cores);
    if (!common.empty()) found.push_back({&node, std::move(common)});
  }
  return found;
}

}  // namespace

std::vector<NodeThreads> place_threads(const Topology& topology, std::span<const int> cores,
                                       int num_threads) {
  const std::vector<NodeCores> nodes = by_node(topology, cores);
  std::size_t total = 0, before = 0;
  for (const NodeCores& one : nodes) total += one.cores.size();
  ensure(total > 0 && num_threads >= 0);
  const std::size_t threads = num_threads > 0 ? static_cast<std::size_t>(num_threads) : total;
  // Rounded up, so that a single thread is on the first node.
  const auto given_to = [&](std::size_t end) { return (threads * end + total - 1) / total; };
  std::vector<NodeThreads> placed;
  for (const NodeCores& one : nodes) {
    const std::size_t end = before + one.cores.size();
    const auto count = static_cast<int>(given_to(end) - given_to(before));
    if (count > 0)
      placed.push_back({one.node->id, count, quota_bites(topology) ? one.node->cores : one.cores});
    before = end;
  }
  return placed;
}

}  // namespace strata
