// Any bytes as checkpoint.json: refused with a FormatError, or one that would be written so and
// whose pieces cover its vectors.

#include <string>

#include "io/store/json_seal.hpp"
#include "src/checkpoint/checkpoint_manifest.hpp"
#include "src/checkpoint/piece_coverage.hpp"
#include "strata/core/error.hpp"

namespace strata::testing {
namespace {

void parse(const std::string& text) {
  try {
    const CheckpointManifest manifest = parse_checkpoint_json(text, "checkpoint.json");
    check_coverage(manifest.vectors, manifest.pieces);
    ensure(checkpoint_json(manifest) == text);
  } catch (const FormatError&) {
    // As it should be.
  }
}

}  // namespace
}  // namespace strata::testing

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  strata::testing::parse(text);
  strata::testing::parse(strata::resealed_json(text));
  return 0;
}
