#pragma once
// Room on the drives of the NVMe tier. The check throws ConfigError with the facts and the way out.

#include <cstdint>
#include <string>

namespace strata {

void check_drive_space(const std::string& directory, std::uint64_t bytes);
std::string space_advice();

}  // namespace strata
