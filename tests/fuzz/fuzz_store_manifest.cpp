// Any bytes as a manifest: refused with a FormatError, or one that would be written so.

#include "fuzz/store_inputs.hpp"
#include "io/store/manifest.hpp"
#include "strata/core/error.hpp"

namespace strata::testing {
namespace {

void decode(const Bytes& bytes) {
  try {
    const Manifest manifest = decode_manifest(bytes, "manifest");
    ensure(encode(manifest) == bytes);
  } catch (const FormatError&) {
    // As it should be.
  }
}

}  // namespace
}  // namespace strata::testing

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto* begin = reinterpret_cast<const std::byte*>(data);
  strata::testing::Bytes bytes(begin, begin + size);
  strata::testing::decode(bytes);
  strata::seal_manifest(bytes);
  strata::testing::decode(bytes);
  return 0;
}
