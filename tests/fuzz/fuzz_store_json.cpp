// Any bytes as store.json: refused with a FormatError, or a store whose tiles lie apart and within
// their drives.

#include <algorithm>

#include "fuzz/store_inputs.hpp"
#include "io/store/json_seal.hpp"
#include "io/store/store_json.hpp"
#include "strata/core/error.hpp"

namespace strata::testing {
namespace {

void check_tile(const StoreDescription& store, std::size_t index) {
  const TileExtent& extent = store.tiles[index];
  const std::uint64_t drive_bytes =
      store.drives.at(static_cast<std::size_t>(extent.tile.drive)).bytes;
  ensure(extent.tile.bytes > 0);
  for (int place = 0; place < store.num_places(); ++place) {
    const std::uint64_t offset = extent.offsets[static_cast<std::size_t>(place)];
    ensure(offset % store.alignment == 0);
    ensure(offset <= drive_bytes && store.padded_bytes(index) <= drive_bytes - offset);
  }
}

void parse(const std::string& text) {
  try {
    const PartDescription part = parse_store_json(text, "store.json");
    for (std::size_t i = 0; i < part.store.tiles.size(); ++i) check_tile(part.store, i);
    ensure(store_json(part.store, part.part) == text);
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
