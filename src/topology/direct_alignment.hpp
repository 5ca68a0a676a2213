#pragma once
// What direct I/O on new files of a directory must be aligned to.

#include <cstdint>
#include <optional>
#include <string>

namespace strata {

// For offset and memory alike. 0: the file system has no direct I/O. Nothing: the kernel (before
// 6.1), the file system or the directory's permissions do not let anybody know.
std::optional<std::uint64_t> direct_alignment_in(const std::string& directory);

}  // namespace strata
