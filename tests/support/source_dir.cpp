#include "support/source_dir.hpp"

namespace strata {

std::filesystem::path source_dir() { return STRATA_SOURCE_DIR; }

}  // namespace strata
