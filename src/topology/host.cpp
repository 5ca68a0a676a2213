#include "strata/topology/host.hpp"

#include <unistd.h>

#include <charconv>

#include "topology/host_files.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;

// "6.1.0-18-amd64"
std::optional<KernelVersion> parse_version(const std::string& release) {
  const std::size_t dot = release.find('.');
  if (dot == std::string::npos) return std::nullopt;
  const auto major = parse_count(release.substr(0, dot));
  const std::size_t end = release.find_first_not_of("0123456789", dot + 1);
  const auto minor = parse_count(release.substr(dot + 1, end - dot - 1));
  if (!major || !minor) return std::nullopt;
  return KernelVersion{static_cast<int>(*major), static_cast<int>(*minor)};
}

// "model name : AMD EPYC"
std::string cpu_name(const std::string& cpuinfo) {
  const std::string field = field_of(cpuinfo, "model name");
  return std::string(trimmed(std::string_view(field).substr(field.find(':') + 1)));
}

std::uint64_t first_count(const std::string& text) {
  const auto words = words_of(text);
  return words.empty() ? 0 : parse_count(words[0]).value_or(0);
}

// "Max open files            1024                 524288               files"
ProcessLimit parse_limit(const std::string& limits, std::string_view name) {
  const auto words = words_of(field_of(limits, name));
  if (words.size() < 2) return {};
  return {parse_count(words[0]), parse_count(words[1])};  // "unlimited" is no number
}

void read_memory(HostFacts& facts, const std::string& meminfo) {
  facts.memory_bytes = kib_field_of(meminfo, "MemTotal:");
  facts.memory_available_bytes = kib_field_of(meminfo, "MemAvailable:");
  facts.swap_bytes = kib_field_of(meminfo, "SwapTotal:");
  facts.swap_used_bytes = facts.swap_bytes - kib_field_of(meminfo, "SwapFree:");
  facts.huge_pages.reserved = first_count(field_of(meminfo, "HugePages_Total:"));
  facts.huge_pages.reserved_free = first_count(field_of(meminfo, "HugePages_Free:"));
}

void read_huge_pages(HostFacts& facts, const fs::path& folder) {
  facts.huge_pages.mode = bracketed(read_system_line(folder / "enabled"));
  facts.huge_pages.page_bytes = read_system_count(folder / "hpage_pmd_size").value_or(0);
}

// Capabilities in a user namespace of its own (rootless containers) lift no limit of the machine.
bool is_in_first_namespace(const std::string& uid_map) {
  return words_of(uid_map) == std::vector<std::string>{"0", "0", "4294967295"};
}

void read_permissions(HostFacts& facts, const std::string& status, const std::string& uid_map) {
  constexpr unsigned cap_ipc_lock = 14;
  const std::string effective = field_of(status, "CapEff:");
  std::uint64_t capabilities = 0;
  std::from_chars(effective.data(), effective.data() + effective.size(), capabilities, 16);
  facts.may_lock_any = (capabilities >> cap_ipc_lock & 1) != 0 && is_in_first_namespace(uid_map);
  facts.is_filtered = field_of(status, "Seccomp:") == "2";
  facts.allowed_cores = parse_id_list(field_of(status, "Cpus_allowed_list:"));
}

void read_switches(HostFacts& facts, const fs::path& sysctl) {
  if (const auto value = read_system_count(sysctl / "kernel/io_uring_disabled"))
    facts.io_uring_disabled = static_cast<int>(*value);
}

// A row has the distances to all nodes online, in their order.
void read_distances(HostFacts& facts, const fs::path& folder) {
  const std::vector<int> nodes = parse_id_list(read_system_line(folder / "online"));
  for (const int node : nodes) {
    const auto row =
        words_of(read_system_line(folder / ("node" + std::to_string(node)) / "distance"));
    for (std::size_t i = 0; i < row.size() && i < nodes.size(); ++i)
      facts.distances[node][nodes[i]] = static_cast<int>(parse_count(row[i]).value_or(0));
  }
}

}  // namespace

HostFacts read_host_facts(const SystemRoots& roots) {
  HostFacts facts;
  facts.kernel_release = read_system_line(roots.proc / "sys/kernel/osrelease");
  facts.kernel = parse_version(facts.kernel_release);
  facts.cpu = cpu_name(read_system_file(roots.proc / "cpuinfo"));
  facts.page_bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  read_huge_pages(facts, roots.sys / "kernel/mm/transparent_hugepage");
  const std::string limits = read_system_file(roots.proc / "self/limits");
  facts.locked_bytes = parse_limit(limits, "Max locked memory");
  facts.open_files = parse_limit(limits, "Max open files");
  read_permissions(facts, read_system_file(roots.proc / "self/status"),
                   read_system_file(roots.proc / "self/uid_map"));
  read_switches(facts, roots.proc / "sys");
  read_memory(facts, read_system_file(roots.proc / "meminfo"));
  facts.cgroup = read_cgroup_limits((roots.sys / "fs/cgroup").string(),
                                    read_system_file(roots.proc / "self/cgroup"));
  facts.online_cores = parse_id_list(read_system_line(roots.sys / "devices/system/cpu/online"));
  read_distances(facts, roots.sys / "devices/system/node");
  return facts;
}

HostFacts read_host_facts() { return read_host_facts(SystemRoots{}); }

}  // namespace strata
