#pragma once
// `strata doctor`: what this machine offers a run, line by line, and what to mend.
// Thread contract: one thread.

#include <cstdint>
#include <string>
#include <vector>

namespace strata {

enum class Health : std::uint8_t {
  ok,
  degraded,  // works, at a cost that `advice` states
  broken,    // something will fail; `advice` says how to mend it
};

struct Finding {
  std::string topic;   // "io_uring", "memlock", "drive /data"
  Health health = Health::ok;
  std::string facts;   // what was found
  std::string advice;  // empty when ok
};

struct DoctorOptions {
  std::vector<std::string> paths;  // directories to be used as nvme_paths; may be empty
};

// Never throws for what it finds: that is a finding.
std::vector<Finding> examine(const DoctorOptions& options);
std::string format_findings(const std::vector<Finding>& findings);
std::string findings_to_json(const std::vector<Finding>& findings);

}  // namespace strata
