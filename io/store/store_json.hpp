#pragma once
// The text of store.json (docs/design/storage.md): the same in every part of a store but for the
// number of the part, and ending in a checksum of all that is before it. There is one spelling of a
// description: what is read must be, byte for byte, what would be written.

#include <cstdint>
#include <string>
#include <string_view>

#include "io/store/store_description.hpp"

namespace strata {

inline constexpr std::uint64_t store_json_bytes_max = std::uint64_t{256} << 20;

struct PartDescription {
  StoreDescription store;
  std::size_t part = 0;  // index of its drive
};

// Throws ConfigError when a path is no UTF-8 and so cannot be written down.
std::string store_json(const StoreDescription& store, std::size_t part);
// Throws FormatError naming `path` and what is wrong.
PartDescription parse_store_json(std::string_view text, const std::string& path);

}  // namespace strata
