#pragma once
// Good inputs of the checkpoints' fuzzers to begin with.

#include <cstddef>
#include <vector>

namespace strata::testing {

std::vector<std::vector<std::byte>> checkpoint_manifest_seeds();

}  // namespace strata::testing
