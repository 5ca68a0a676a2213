#pragma once
// `strata doctor`: what this machine offers a run, line by line, and what to mend.
// Thread contract: one thread.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace strata {

enum class Health : std::uint8_t {
  ok,
  degraded,  // works, at a cost that `advice` states
  broken,    // something will fail; `advice` says how to mend it
};
std::string_view health_name(Health health);

struct Finding {
  std::string topic;  // "io_uring", "memlock", "drive /data"
  Health health = Health::ok;
  std::string facts;   // what was found
  std::string advice;  // empty when ok; a line for each thing that is not
};

struct DoctorOptions {
  std::vector<std::string> paths;  // directories to be used as nvme_paths; may be empty
  std::string output_dir;          // where a run would write, made when it is missing; empty: none
};

// Never throws for what it finds: that is a finding.
std::vector<Finding> examine(const DoctorOptions& options);

// The worst of all; ok when there are none.
Health overall_health(const std::vector<Finding>& findings);

enum class Paint : std::uint8_t { none, ansi };
// At most 100 columns wide, but for words that are longer themselves.
std::string format_findings(const std::vector<Finding>& findings, Paint paint = Paint::none);
std::string findings_to_json(const std::vector<Finding>& findings);

}  // namespace strata
