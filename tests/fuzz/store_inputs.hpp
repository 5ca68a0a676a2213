#pragma once
// The inputs of the store's fuzzers: what a byte string means as the files of a store, and good
// ones to begin with.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace strata::testing {

using Bytes = std::vector<std::byte>;

inline std::string as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The small files of a store of two parts as one string: a byte of flags, the lengths of the
// store.json of each part in two bytes each, their texts, and the manifest.
struct StoreFiles {
  std::string description, second_description;
  Bytes manifest;
};
// Makes the checksums right where the flags say so: what is behind them would not be reached else.
StoreFiles store_files(std::span<const std::byte> input);

std::vector<Bytes> description_seeds();
std::vector<Bytes> manifest_seeds();
std::vector<Bytes> store_seeds();

}  // namespace strata::testing
