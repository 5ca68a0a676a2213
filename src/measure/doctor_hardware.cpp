#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "measure/doctor_findings.hpp"
#include "strata/core/bytes.hpp"
#include "strata/topology/binding.hpp"

namespace strata {
namespace {

std::size_t num_allowed_cores(const Topology& topology) {
  std::size_t count = 0;
  for (const NumaNode& node : topology.nodes) count += node.cores.size();
  return count;
}

std::string plural(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string memory_facts(const DoctorFacts& facts) {
  const HostFacts& host = facts.host;
  std::string text =
      fmt::format("{} of {} available", format_bytes(facts.topology.available_memory_bytes),
                  format_bytes(facts.topology.memory_bytes));
  if (facts.topology.memory_bytes < host.memory_bytes)
    text +=
        fmt::format(", limited by the cgroup; the machine has {}", format_bytes(host.memory_bytes));
  if (host.swap_bytes == 0) return text + "; no swap";
  return text + fmt::format("; {} of {} swap in use", format_bytes(host.swap_used_bytes),
                            format_bytes(host.swap_bytes));
}

std::string core_text(const std::vector<int>& cores) {
  return fmt::format("core{} {}", cores.size() == 1 ? "" : "s", format_cores(cores));
}

std::string rank_text(const RankCores& rank, std::size_t number) {
  return fmt::format("rank {}: {} compute and {} update threads on node{} {}, {}", number,
                     rank.compute.size(), rank.update.size(), rank.nodes.size() == 1 ? "" : "s",
                     format_cores(rank.nodes), core_text(rank.update));
}

std::vector<int> gpu_nodes(const DoctorFacts& facts) {
  std::vector<int> nodes;
  for (const GpuFacts& gpu : facts.gpus.gpus) nodes.push_back(gpu.numa_node.value_or(-1));
  nodes.resize(static_cast<std::size_t>(std::max(0, facts.num_usable_gpus)), -1);
  return nodes;
}

// Rank per GPU; the host's own threads compute where there is none.
BindingRequest request_for(const DoctorFacts& facts) {
  if (facts.num_usable_gpus == 0) return {};
  return {facts.num_usable_gpus, gpu_nodes(facts), 1};
}

std::string distance_text(const HostFacts& host, int from, int to) {
  const auto row = host.distances.find(from);
  if (row == host.distances.end() || !row->second.contains(to)) return "";
  return fmt::format(" (distance {}, where {} is home)", row->second.at(to), row->second.at(from));
}

bool is_near_a_gpu(const DoctorFacts& facts, int node) {
  return std::ranges::any_of(facts.gpus.gpus, [&](const GpuFacts& gpu) {
    return !gpu.numa_node || *gpu.numa_node == node;
  });
}

void judge_drive_node(Finding& finding, const DoctorFacts& facts, const DriveFacts& drive) {
  if (!drive.numa_node || facts.gpus.gpus.empty() || facts.num_usable_gpus == 0) return;
  if (is_near_a_gpu(facts, *drive.numa_node)) return;
  const int gpu_node = *facts.gpus.gpus[0].numa_node;
  worsen(finding, Health::degraded,
         fmt::format("drive {} is on node {} and no GPU is: its bytes cross from node to node on "
                     "their way to node {}{}. A drive near a GPU spares that",
                     drive.disk, *drive.numa_node, gpu_node,
                     distance_text(facts.host, *drive.numa_node, gpu_node)));
}

std::string gpu_text(const GpuFacts& gpu) {
  std::string text = gpu.name.empty() ? "NVIDIA device" : gpu.name;
  text += " at " + gpu.pci_address;
  if (gpu.numa_node) text += fmt::format(", node {}", *gpu.numa_node);
  if (!gpu.pcie_link.empty()) text += ", " + gpu.pcie_link;
  if (!gpu.driver.empty() && gpu.driver != "nvidia") text += ", driven by " + gpu.driver;
  return text;
}

std::string inventory_text(const GpuInventory& inventory) {
  if (inventory.gpus.empty() && inventory.driver_version.empty()) return "none";
  std::string text =
      inventory.driver_version.empty() ? "no NVIDIA driver" : "driver " + inventory.driver_version;
  for (const GpuFacts& gpu : inventory.gpus) text += "; " + gpu_text(gpu);
  return text;
}

}  // namespace

Finding find_memory(const DoctorFacts& facts) {
  Finding finding{"memory", Health::ok, memory_facts(facts), ""};
  const Topology& topology = facts.topology;
  if (topology.available_memory_bytes < topology.memory_bytes / 2)
    worsen(
        finding, Health::degraded,
        "more than half is in use: a plan has only the rest. See who holds it (`top`), or stop it");
  if (facts.host.swap_used_bytes > facts.host.memory_bytes / 20)
    worsen(finding, Health::degraded,
           "the machine swaps: when it takes a run's memory, steps wait for the swap drive. Lower "
           "offload.cpu_limit, or free memory");
  return finding;
}

Finding find_cores(const DoctorFacts& facts) {
  const Topology& topology = facts.topology;
  const std::size_t allowed = num_allowed_cores(topology);
  Finding finding{"cores", Health::ok, "", ""};
  finding.facts =
      fmt::format("{} usable of {}", topology.usable_cores, facts.host.online_cores.size());
  if (!facts.host.cpu.empty()) finding.facts += ", " + facts.host.cpu;
  if (!facts.topology_failure.empty())
    worsen(finding, Health::degraded, "hwloc could not tell: " + facts.topology_failure);
  if (allowed < facts.host.online_cores.size())
    finding.facts += fmt::format("; cpuset or affinity: {}", core_text(facts.host.allowed_cores));
  if (topology.usable_cores < 2)
    worsen(finding, Health::degraded,
           "I/O, optimizer and compute take turns on one core: nothing overlaps. Two or more let "
           "the lanes run side by side");
  if (facts.host.cgroup.cpus && *facts.host.cgroup.cpus < static_cast<double>(allowed))
    worsen(finding, Health::degraded,
           fmt::format("the cgroup's quota is {:.3g} of {} cores: when it is used up, all threads "
                       "stop until the period ends. A cpuset of as many cores does without the "
                       "stops, a higher quota with fewer",
                       *facts.host.cgroup.cpus, allowed));
  return finding;
}

Finding find_threads(const DoctorFacts& facts) {
  Finding finding{"threads", Health::ok, "", ""};
  if (num_allowed_cores(facts.topology) == 0) {
    worsen(finding, Health::degraded, "no core is known, so threads cannot be placed");
    return finding;
  }
  const CoreBinding binding = divide_cores(facts.topology, request_for(facts));
  for (std::size_t i = 0; i < binding.ranks.size(); ++i) {
    if (i > 0) finding.facts += "; ";
    finding.facts += rank_text(binding.ranks[i], i);
  }
  if (!binding.note.empty())
    worsen(finding, Health::degraded, binding.note + ": their updates slow each other down");
  return finding;
}

Finding find_openmp(const DoctorFacts& facts) {
  return {"OpenMP", Health::ok,
          fmt::format("OMP_NUM_THREADS is {}; Strata ignores it: compute_threads and "
                      "update_threads in the config decide",
                      facts.omp_num_threads.value_or("not set")),
          ""};
}

Finding find_numa(const DoctorFacts& facts) {
  const auto& nodes = facts.topology.nodes;
  Finding finding{"NUMA", Health::ok, plural(nodes.size(), "node"), ""};
  for (const NumaNode& node : nodes) {
    finding.facts += fmt::format("; node {}: {}", node.id, format_bytes(node.memory_bytes));
    finding.facts += ", " + (node.cores.empty() ? "no usable core" : core_text(node.cores));
  }
  for (const DirectoryFacts& drive : facts.drives) judge_drive_node(finding, facts, drive.drive);
  return finding;
}

Finding find_gpus(const DoctorFacts& facts) {
  const GpuInventory& inventory = facts.gpus;
  Finding finding{"GPUs", Health::ok, inventory_text(inventory), ""};
  if (facts.num_usable_gpus > 0) return finding;
  const std::size_t own = num_own_gpus(inventory);
  if (own > 0 && facts.cuda.is_hidden)
    worsen(finding, Health::degraded, "CUDA_VISIBLE_DEVICES hides all: the CPU computes");
  else if (own == 0)
    worsen(finding, Health::degraded,
           "the CPU computes: right for small models and for trying plans, slow for large ones");
  else if (inventory.driver_version.empty())
    worsen(finding, Health::broken,
           "there is a GPU but no driver for it: install NVIDIA's, and in a container start it "
           "with the NVIDIA runtime (Docker: --gpus all)");
  else
    worsen(finding, Health::broken,
           fmt::format("CUDA cannot use {}: {}. A run refuses to start, unless device: cpu has the "
                       "host compute",
                       own == 1 ? "it" : "them", facts.cuda.failure));
  return finding;
}

}  // namespace strata
