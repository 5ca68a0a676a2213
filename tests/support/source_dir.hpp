#pragma once
// Where the sources of the build under test lie.
// Thread contract: any thread.

#include <filesystem>

namespace strata {

std::filesystem::path source_dir();

}  // namespace strata
