#pragma once
// A measured profile with digits that mean something. Thread contract: pure.

#include <cstdint>

#include "strata/plan/machine.hpp"

namespace strata {

// Whole megabytes: files are read by people.
std::uint64_t whole_megabytes(std::uint64_t bytes);
// Rates to four digits: the rest is noise.
void round_profile(MachineProfile& machine);

}  // namespace strata
