#pragma once
// Whether a drive gives back what was written to it: a pattern is written to the first bytes of a
// file, read and compared.

#include <cstdint>

#include "strata/io/io_engine.hpp"

namespace strata {

// Throws Error. `bytes`: of the file.
void probe_drive(IoEngine& engine, FileId file, std::uint64_t alignment, std::uint64_t bytes);

}  // namespace strata
