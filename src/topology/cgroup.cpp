#include "strata/topology/cgroup.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <filesystem>
#include <limits>
#include <sstream>
#include <string_view>
#include <vector>

#include "topology/system_files.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;

// Version 1 writes "no limit" as the largest number of pages; no machine has this much memory.
constexpr std::uint64_t v1_unlimited_from = 1ull << 60;

template <typename Number>
std::optional<Number> parse(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return std::nullopt;
  return value;
}

template <typename Number>
std::optional<Number> read_number(const fs::path& path) {
  return parse<Number>(read_system_file(path));
}

// "inactive_file 4096" among other lines.
std::uint64_t read_field(const fs::path& path, std::string_view name) {
  std::istringstream lines(read_system_file(path));
  std::string key;
  for (std::uint64_t value = 0; lines >> key >> value;) {
    if (key == name) return value;
  }
  return 0;
}

template <typename Number>
void tighten(std::optional<Number>& limit, std::optional<Number> other) {
  if (other && (!limit || *other < *limit)) limit = other;
}

void apply_memory(CgroupLimits& limits, std::optional<std::uint64_t> limit,
                  std::optional<std::uint64_t> used, std::uint64_t droppable) {
  if (!limit) return;
  tighten(limits.memory_bytes, limit);
  const std::uint64_t held = used.value_or(0) - std::min(droppable, used.value_or(0));
  tighten(limits.memory_available_bytes, std::optional(*limit - std::min(held, *limit)));
}

std::optional<double> quota_over_period(std::optional<double> quota, std::optional<double> period) {
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return *quota / *period;
}

// cpu.max reads "250000 100000" or "max 100000".
std::optional<double> v2_cpus(const fs::path& group) {
  std::istringstream words(read_system_file(group / "cpu.max"));
  std::string quota, period;
  words >> quota >> period;
  return quota_over_period(parse<double>(quota), parse<double>(period));
}

void apply_v2(CgroupLimits& limits, const fs::path& group) {
  tighten(limits.cpus, v2_cpus(group));
  apply_memory(limits, read_number<std::uint64_t>(group / "memory.max"),
               read_number<std::uint64_t>(group / "memory.current"),
               read_field(group / "memory.stat", "inactive_file"));
}

void apply_v1_cpu(CgroupLimits& limits, const fs::path& group) {
  tighten(limits.cpus, quota_over_period(read_number<double>(group / "cpu.cfs_quota_us"),
                                         read_number<double>(group / "cpu.cfs_period_us")));
}

void apply_v1_memory(CgroupLimits& limits, const fs::path& group) {
  const auto limit = read_number<std::uint64_t>(group / "memory.limit_in_bytes");
  if (limit && *limit >= v1_unlimited_from) return;
  apply_memory(limits, limit, read_number<std::uint64_t>(group / "memory.usage_in_bytes"),
               read_field(group / "memory.stat", "total_inactive_file"));
}

// One line of /proc/self/cgroup: "4:memory:/jobs/7", "0::/jobs/7" for version 2.
struct Membership {
  std::string controllers;
  std::string path;
};

std::vector<Membership> parse_membership(const std::string& text) {
  std::vector<Membership> found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    found.push_back({line.substr(first + 1, second - first - 1), line.substr(second + 1)});
  }
  return found;
}

bool has_controller(const Membership& membership, std::string_view name) {
  std::istringstream names(membership.controllers);
  for (std::string one; std::getline(names, one, ',');) {
    if (one == name) return true;
  }
  return false;
}

// From the group itself up to the mount's root. In a container the path may be the host's and exist
// only in part.
template <typename Apply>
void for_each_ancestor(const fs::path& mount, const std::string& path, Apply apply) {
  fs::path relative = fs::path(path).relative_path().lexically_normal();
  for (; !relative.empty() && relative != "."; relative = relative.parent_path())
    apply(mount / relative);
  apply(mount);
}

// Version 1 mounts "cpu,cpuacct" under that name, or each controller under its own.
fs::path v1_mount(const fs::path& root, const Membership& membership, std::string_view controller) {
  const fs::path joint = root / membership.controllers;
  return fs::exists(joint) ? joint : root / controller;
}

void apply(CgroupLimits& limits, const fs::path& root, const Membership& membership) {
  if (membership.controllers.empty()) {
    const auto group = [&](const fs::path& path) { apply_v2(limits, path); };
    for_each_ancestor(root, membership.path, group);
    // The hybrid layout keeps version 2 beside the version 1 controllers.
    if (fs::exists(root / "unified")) for_each_ancestor(root / "unified", membership.path, group);
  }
  if (has_controller(membership, "cpu")) {
    for_each_ancestor(v1_mount(root, membership, "cpu"), membership.path,
                      [&](const fs::path& group) { apply_v1_cpu(limits, group); });
  }
  if (has_controller(membership, "memory")) {
    for_each_ancestor(v1_mount(root, membership, "memory"), membership.path,
                      [&](const fs::path& group) { apply_v1_memory(limits, group); });
  }
}

}  // namespace

CgroupLimits read_cgroup_limits(const std::string& root, const std::string& membership) {
  CgroupLimits limits;
  for (const Membership& one : parse_membership(membership)) apply(limits, root, one);
  return limits;
}

}  // namespace strata
