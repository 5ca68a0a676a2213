#include "strata/topology/binding.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <set>

#include "strata/core/error.hpp"

namespace strata {
namespace {

using Cores = std::vector<int>;

struct Share {
  std::vector<const NumaNode*> nodes;
  Cores cores;
};

std::vector<const NumaNode*> nodes_with_cores(const Topology& topology) {
  std::vector<const NumaNode*> nodes;
  for (const NumaNode& node : topology.nodes) {
    if (!node.cores.empty()) nodes.push_back(&node);
  }
  return nodes;
}

std::size_t count_cores(std::span<const NumaNode* const> nodes) {
  std::size_t count = 0;
  for (const NumaNode* node : nodes) count += node->cores.size();
  return count;
}

// The node that holds the middle of the rank's part when all cores lie in one row.
std::size_t fair_node(std::span<const NumaNode* const> nodes, std::size_t rank,
                      std::size_t num_ranks) {
  const std::size_t middle = ((2 * rank + 1) * count_cores(nodes) - 1) / (2 * num_ranks);
  std::size_t index = 0;
  for (std::size_t end = nodes[0]->cores.size(); end <= middle; end += nodes[index]->cores.size())
    ++index;
  return index;
}

std::size_t home_node(std::span<const NumaNode* const> nodes, const BindingRequest& request,
                      std::size_t rank) {
  if (rank < request.near_nodes.size()) {
    const auto near = std::ranges::find(nodes, request.near_nodes[rank], &NumaNode::id);
    if (near != nodes.end()) return static_cast<std::size_t>(near - nodes.begin());
  }
  return fair_node(nodes, rank, static_cast<std::size_t>(request.num_ranks));
}

// Element i of k picks spread evenly: one thread of each core before two of any, and all caches.
Cores spread(const Cores& cores, std::size_t count) {
  if (count >= cores.size()) return cores;
  Cores picked;
  for (std::size_t i = 0; i < count; ++i) picked.push_back(cores[i * cores.size() / count]);
  return picked;
}

// The part of one of several ranks of a node: neighbours in the hardware's order, so that two ranks
// never meet on one core while there are enough.
Cores part(const Cores& cores, std::size_t index, std::size_t count) {
  if (cores.size() < count) return {cores[index * cores.size() / count]};
  const auto begin = cores.begin() + static_cast<std::ptrdiff_t>(index * cores.size() / count);
  const auto end = cores.begin() + static_cast<std::ptrdiff_t>((index + 1) * cores.size() / count);
  return {begin, end};
}

// The ranks that live on each node.
using Residents = std::vector<std::vector<std::size_t>>;

Residents settle(std::span<const NumaNode* const> nodes, const BindingRequest& request) {
  Residents residents(nodes.size());
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(request.num_ranks); ++rank)
    residents[home_node(nodes, request, rank)].push_back(rank);
  return residents;
}

// Nodes that are home to nobody go to the ranks with the fewest cores: no core stays idle.
void adopt_empty_nodes(Residents& residents, std::span<const NumaNode* const> nodes,
                       std::size_t num_ranks) {
  std::vector<std::size_t> counts(num_ranks);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (const std::size_t rank : residents[i])
      counts[rank] = nodes[i]->cores.size() / residents[i].size();
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!residents[i].empty()) continue;
    const auto poorest = std::ranges::min_element(counts);
    residents[i].push_back(static_cast<std::size_t>(poorest - counts.begin()));
    *poorest += nodes[i]->cores.size();
  }
}

void give(Share& share, const NumaNode& node, const Cores& cores) {
  share.nodes.push_back(&node);
  share.cores.insert(share.cores.end(), cores.begin(), cores.end());
}

std::vector<Share> share_out(std::span<const NumaNode* const> nodes,
                             const BindingRequest& request) {
  std::vector<Share> shares(static_cast<std::size_t>(request.num_ranks));
  Residents residents = settle(nodes, request);
  adopt_empty_nodes(residents, nodes, shares.size());
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    const auto& ranks = residents[node];
    for (std::size_t i = 0; i < ranks.size(); ++i)
      give(shares[ranks[i]], *nodes[node], part(nodes[node]->cores, i, ranks.size()));
  }
  return shares;
}

// A quota of the whole process, divided among the ranks: at least one core each.
void keep_quota(std::vector<Share>& shares, std::size_t quota) {
  for (std::size_t rank = 0; rank < shares.size(); ++rank) {
    const std::size_t below = rank * quota / shares.size();
    const std::size_t allowed = (rank + 1) * quota / shares.size() - below;
    shares[rank].cores = spread(shares[rank].cores, std::max<std::size_t>(1, allowed));
  }
}

std::vector<int> ids_of(const Share& share) {
  std::vector<int> ids;
  for (const NumaNode* node : share.nodes) {
    const bool is_used = std::ranges::any_of(share.cores, [&](int core) {
      return std::ranges::find(node->cores, core) != node->cores.end();
    });
    if (is_used) ids.push_back(node->id);
  }
  return ids;
}

RankCores split_pools(const Share& share, int compute_cores) {
  const auto compute = static_cast<std::size_t>(std::max(0, compute_cores));
  if (compute == 0 || compute >= share.cores.size())
    return {ids_of(share), share.cores, share.cores};
  const auto middle = share.cores.begin() + static_cast<std::ptrdiff_t>(compute);
  return {ids_of(share), {share.cores.begin(), middle}, {middle, share.cores.end()}};
}

std::string note_of(std::span<const Share> shares, const Topology& topology) {
  std::set<int> distinct;
  std::size_t count = 0;
  for (const Share& share : shares) {
    distinct.insert(share.cores.begin(), share.cores.end());
    count += share.cores.size();
  }
  const auto usable = static_cast<std::size_t>(topology.usable_cores);
  if (distinct.size() == count && count <= usable) return "";
  return fmt::format("{} ranks share {} cores", shares.size(), std::min(distinct.size(), usable));
}

}  // namespace

CoreBinding divide_cores(const Topology& topology, const BindingRequest& request) {
  const auto nodes = nodes_with_cores(topology);
  ensure(!nodes.empty() && request.num_ranks > 0);
  std::vector<Share> shares = share_out(nodes, request);
  const auto usable = static_cast<std::size_t>(std::max(1, topology.usable_cores));
  if (usable < count_cores(nodes)) keep_quota(shares, usable);
  CoreBinding binding{{}, note_of(shares, topology)};
  for (const Share& share : shares)
    binding.ranks.push_back(split_pools(share, request.compute_cores));
  return binding;
}

}  // namespace strata
