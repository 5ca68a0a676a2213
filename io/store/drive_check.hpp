#pragma once
// What a directory must be to serve as the NVMe tier. Each check throws ConfigError with the facts
// and the way out.

#include <cstdint>
#include <string>

namespace strata {

void check_drive_directory(const std::string& directory);  // a directory, on a drive
void check_drive_space(const std::string& directory, std::uint64_t bytes);
std::string space_advice();

}  // namespace strata
