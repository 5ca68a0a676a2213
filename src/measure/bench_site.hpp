#pragma once
// A BenchSite is one path of a benchmark: checked to be a drive with room, with a scratch directory
// of its own and the names of the two files that are measured on.
//
// Thread contract: one thread.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "scratch_directory.hpp"
#include "strata/io/store/drive_owner.hpp"

namespace strata {

struct BenchSite {
  std::string path;  // as asked
  std::unique_ptr<DriveOwner> owner;
  ScratchDirectory directory;
  std::string source, target;  // read from; written to
};

// Throws ConfigError for a path that is no writable directory, that keeps files in memory, or that
// lacks room for `bytes` (paths on one file system share its room).
void check_bench_paths(const std::vector<std::string>& paths, std::uint64_t bytes);

// Takes the paths, removes what dead benchmarks left there, checks, and makes the scratch
// directories. Throws ConfigError for a path that a run has, too.
std::vector<BenchSite> make_bench_sites(const std::vector<std::string>& paths, std::uint64_t bytes);

}  // namespace strata
