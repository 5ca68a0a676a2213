#pragma once
// A DriveOwner holds folders of offload.nvme_paths for one job: what a drive gives is planned, and
// two runs that share one would each break the other's plan. Held until destroyed; a process that
// dies gives it up. All ranks of a job on a host share what one of its processes has taken.
// Thread contract: one thread.

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "strata/io/file_system.hpp"

namespace strata {

enum class DriveUse : std::uint8_t { run, benchmark };

class DriveOwner {
 public:
  // Throws ConfigError naming who has one of them: pid, host, since when.
  static std::unique_ptr<DriveOwner> take(FileSystem& files,
                                          std::span<const std::string> directories, DriveUse use);
  virtual ~DriveOwner() = default;
};

// Who has it at this moment, as far as can be told without asking for it: "process 7 on host a
// since 2026-11-30 07:00:00 UTC". Empty: nobody.
std::string drive_user(FileSystem& files, const std::string& directory);

}  // namespace strata
