#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

#include "measure/doctor_findings.hpp"
#include "strata/core/bytes.hpp"

namespace strata {
namespace {

struct Feature {
  KernelVersion since;
  std::string_view name, cost;
};
constexpr std::array features = {
    Feature{{5, 6}, "io_uring", "the `threads` engine stands in: more CPU time per GB"},
    Feature{{5, 19},
            "tables of registered buffers",
            "the kernel pins and releases the pages of every transfer: more CPU time per GB"},
    Feature{{6, 1},
            "deferred task work and the drives' own word on alignment",
            "completions interrupt the I/O thread, and direct I/O is aligned to 4096 bytes"},
};

std::string sysctl_advice(int disabled) {
  return fmt::format(
      "the administrator disabled it: sysctl kernel.io_uring_disabled is {}. "
      "`sysctl -w kernel.io_uring_disabled=0` allows it{}",
      disabled, disabled == 1 ? ", or membership in the group of kernel.io_uring_group" : "");
}

std::string refusal_advice(const DoctorFacts& facts) {
  const int disabled = facts.host.io_uring_disabled.value_or(0);
  if (disabled != 0) return sysctl_advice(disabled);
  const int error_number = facts.uring.error_number;
  if ((error_number == EPERM || error_number == ENOSYS || error_number == EACCES) &&
      facts.host.is_filtered) {
    return "a seccomp filter is on, as container runtimes set by default: allow io_uring_setup, "
           "io_uring_enter and io_uring_register (Docker: --security-opt seccomp=PROFILE)";
  }
  if (error_number == ENOSYS) return "the kernel has none: Linux 5.6 or newer is needed";
  if (error_number == ENOMEM) return "raise the limit of locked memory: `ulimit -l unlimited`";
  if (error_number == EMFILE) return "raise the limit of open files: `ulimit -n 65536`";
  return "ask the administrator of this machine why io_uring is refused";
}

std::string limit_text(std::optional<std::uint64_t> bytes) {
  return bytes ? format_bytes(*bytes) : "unlimited";
}

bool is_lock_limit_far(const DoctorFacts& facts) {
  const auto& limit = facts.host.locked_bytes.soft;
  return !limit || facts.host.may_lock_any || *limit >= facts.topology.available_memory_bytes;
}

std::string raise_files_advice(const ProcessLimit& limit) {
  constexpr std::uint64_t plenty = 65536;
  if (limit.hard && *limit.hard <= *limit.soft)
    return "the hard limit is no higher, so it takes LimitNOFILE (systemd), limits.conf or "
           "`docker run --ulimit nofile=65536`";
  return fmt::format("`ulimit -n {}` raises it", std::min(limit.hard.value_or(plenty), plenty));
}

}  // namespace

Finding find_kernel(const DoctorFacts& facts) {
  Finding finding{"kernel", Health::ok, "Linux " + facts.host.kernel_release, ""};
  if (!facts.host.kernel) {
    worsen(finding, Health::degraded, "its version cannot be read, so nothing is said about it");
    return finding;
  }
  for (const Feature& feature : features) {
    if (*facts.host.kernel >= feature.since) continue;
    worsen(finding, Health::degraded,
           fmt::format("older than {}.{}, no {}: {}", feature.since.major, feature.since.minor,
                       feature.name, feature.cost));
  }
  if (finding.health == Health::ok) finding.facts += ": has all that the I/O engine can use";
  return finding;
}

Finding find_io_uring(const DoctorFacts& facts) {
  if (facts.uring.refusal.empty())
    return {"io_uring", Health::ok, "works: " + facts.uring.description, ""};
  Finding finding{"io_uring", Health::ok, "refused: " + facts.uring.refusal, ""};
  worsen(finding, Health::degraded,
         "the `threads` engine stands in: same results, more CPU time per GB");
  worsen(finding, Health::degraded, refusal_advice(facts));
  return finding;
}

Finding find_memlock(const DoctorFacts& facts) {
  const ProcessLimit& limit = facts.host.locked_bytes;
  Finding finding{"memlock", Health::ok, "limit " + limit_text(limit.soft), ""};
  if (limit.soft && facts.host.may_lock_any)
    finding.facts += ", lifted for this process (CAP_IPC_LOCK)";
  if (!facts.uring.refusal.empty())
    finding.facts += "; not needed by the `threads` engine";
  else if (!is_lock_limit_far(facts))
    worsen(
        finding, Health::degraded,
        fmt::format("a run registers its whole CPU tier with io_uring, as much as {} here; what "
                    "the limit forbids stays unregistered, for which twice the CPU time per GB "
                    "was measured on one virtual machine. `ulimit -l unlimited` (hard limit {}), "
                    "LimitMEMLOCK=infinity or `docker run --ulimit memlock=-1` lift it",
                    format_bytes(facts.topology.available_memory_bytes), limit_text(limit.hard)));
  return finding;
}

Finding find_huge_pages(const DoctorFacts& facts) {
  const HugePages& pages = facts.host.huge_pages;
  Finding finding{"huge pages", Health::ok, "", ""};
  finding.facts = pages.mode.empty() ? "the kernel has no transparent ones"
                                     : fmt::format("transparent ones: {}", pages.mode);
  if (pages.page_bytes > 0) finding.facts += ", of " + format_bytes(pages.page_bytes);
  if (pages.reserved > 0)
    finding.facts += fmt::format("; {} reserved ones, {} of them free, are not used by Strata",
                                 pages.reserved, pages.reserved_free);
  if (pages.mode == "always" || pages.mode == "madvise") return finding;
  worsen(finding, Health::degraded,
         "about a third of the read rate was measured with 4 KiB pages on one virtual machine. "
         "`echo madvise > /sys/kernel/mm/transparent_hugepage/enabled` as root grants them");
  return finding;
}

Finding find_open_files(const DoctorFacts& facts) {
  constexpr std::uint64_t needed = 64, comfortable = 1024;
  const ProcessLimit& limit = facts.host.open_files;
  Finding finding{"open files", Health::ok, "limit ", ""};
  finding.facts += limit.soft ? fmt::format("{}", *limit.soft) : "unlimited";
  if (!limit.soft || *limit.soft >= comfortable) return finding;
  const std::string advice = raise_files_advice(limit);
  if (*limit.soft < needed)
    worsen(finding, Health::broken,
           "too few for the drives, weights and token shards of a run: " + advice);
  else
    worsen(finding, Health::degraded,
           "a run with many weight files or token shards may fail at the start: " + advice);
  return finding;
}

}  // namespace strata
