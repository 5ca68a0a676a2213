#pragma once
// Which cores the threads of each rank run on. A rank's cores lie on as few NUMA nodes as the
// machine allows, so that the memory its threads touch first is near them; ranks share fairly. A
// pool's threads are placed by node, not core by core: within a node the system balances them. Pure
// but for bind_current_thread() and place_memory_on_node().

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "strata/topology/topology.hpp"

namespace strata {

struct BindingRequest {
  int num_ranks = 1;  // of this process
  // The node near each rank's GPU, by id; empty, unknown or -1: as is fair.
  std::vector<int> near_nodes = {};
  // Cores of a rank that its update threads leave to compute. 0: both pools use all of them, which
  // is right where the host computes. 1 is enough to drive a GPU.
  int compute_cores = 0;
};

struct RankCores {
  std::vector<int> nodes;            // where the cores lie, by id
  std::vector<int> compute, update;  // cores of each pool: at least one. One thread per core.
};

struct CoreBinding {
  std::vector<RankCores> ranks;
  std::string note;  // "4 ranks share 2 cores"; empty: each core has one rank
};

// Never more cores in all than topology.usable_cores (a quota may allow fewer than the affinity
// mask), but for ranks that would have none: those share.
CoreBinding divide_cores(const Topology& topology, const BindingRequest& request);

// The threads of one pool on one NUMA node.
struct NodeThreads {
  int node = 0;  // by id
  int count = 0;
  std::vector<int> cores;  // any of these may run any of the threads
};

// The threads of a pool that has `cores`: one per core, or `num_threads` spread over the nodes as
// the cores are; a node without a thread is left out. Threads are held to their node and there to
// the pool's cores. Where a quota allows fewer cores than the affinity mask they are held to the
// node alone: the quota counts time on any core, and other containers pick from the same ones.
std::vector<NodeThreads> place_threads(const Topology& topology, std::span<const int> cores,
                                       int num_threads = 0);

// "0-3,8"
std::string format_cores(std::span<const int> cores);

// Through hwloc. Returns why it was refused; empty: done.
std::string bind_current_thread(std::span<const int> cores);

// Through hwloc. Pages that nobody has touched yet come from the NUMA node with this id while it
// has any, then from others. Returns why that was refused; empty: done.
std::string place_memory_on_node(std::span<std::byte> memory, int node);
// The same where a refusal is no failure: memory then lies where the system puts it. Empty for a
// node that is not known (-1).
std::function<void(std::span<std::byte>)> placer_on_node(int node);

}  // namespace strata
