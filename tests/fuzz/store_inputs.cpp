#include "fuzz/store_inputs.hpp"

#include <algorithm>

#include "io/store/checksum.hpp"
#include "io/store/manifest.hpp"
#include "io/store/json_seal.hpp"
#include "io/store/store_json.hpp"

namespace strata::testing {
namespace {

constexpr std::size_t head_bytes = 5;
constexpr std::uint8_t seal_description = 1, seal_both = 2, match_description = 4;
constexpr std::size_t description_checksum_at = 24;  // in a manifest

Bytes bytes_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

StoreDescription description(StoreKind kind, std::vector<std::string> directories, int num_tiles) {
  StoreSpec spec{.kind = kind, .name = "run", .directories = std::move(directories), .tiles = {}};
  for (int i = 0; i < num_tiles; ++i) {
    spec.tiles.push_back({.name = "master/" + std::to_string(i),
                          .bytes = 4096 + 100 * static_cast<std::uint64_t>(i),
                          .drive = i % static_cast<int>(spec.directories.size())});
  }
  StoreDescription store = describe_store(spec, Checksums::on);
  store.id = "0123456789abcdef0123456789abcdef";  // the same in every run
  lay_out(store, 4096);
  return store;
}

std::vector<StoreDescription> descriptions() {
  return {description(StoreKind::versioned, {"/a"}, 2),
          description(StoreKind::versioned, {"/a"}, 0),
          description(StoreKind::versioned, {"/a", "/b"}, 3),
          description(StoreKind::scratch, {"/a"}, 2)};
}

Manifest manifest_of(const StoreDescription& store, bool is_committed) {
  Manifest manifest;
  manifest.description_checksum = checksum(bytes_of(store_json(store, 0)));
  manifest.tiles.resize(store.tiles.size());
  if (!is_committed) return manifest;
  manifest.version = 7;
  manifest.note = "step 7";
  // The tiles of the fuzzer's store are zeros.
  for (std::size_t i = 0; i < store.tiles.size(); i += 2)
    manifest.tiles[i] = {static_cast<std::uint8_t>(i % 2),
                         checksum(Bytes(store.tiles[i].tile.bytes))};
  return manifest;
}

void append(Bytes& input, const Bytes& bytes) {
  input.insert(input.end(), bytes.begin(), bytes.end());
}

Bytes length_bytes(const Bytes& text) {
  return {static_cast<std::byte>(text.size()), static_cast<std::byte>(text.size() >> 8)};
}

Bytes store_input(const StoreDescription& store, bool is_committed) {
  const Bytes text = bytes_of(store_json(store, 0));
  const Bytes second = store.drives.size() > 1 ? bytes_of(store_json(store, 1)) : Bytes();
  Bytes input = {std::byte{seal_description | seal_both | match_description}};
  for (const Bytes& part : {length_bytes(text), length_bytes(second), text, second,
                            encode(manifest_of(store, is_committed))})
    append(input, part);
  return input;
}

// Takes the first `bytes` off, or all where there are fewer.
std::span<const std::byte> take(std::span<const std::byte>& rest, std::size_t bytes) {
  const auto taken = rest.first(std::min(bytes, rest.size()));
  rest = rest.subspan(taken.size());
  return taken;
}

std::size_t take_length(std::span<const std::byte>& rest) {
  const auto bytes = take(rest, 2);
  return static_cast<std::size_t>(bytes[0]) | static_cast<std::size_t>(bytes[1]) << 8;
}

void match(Bytes& manifest, const std::string& text) {
  if (manifest.size() < description_checksum_at + 8) return;
  const std::uint64_t sum = checksum(std::as_bytes(std::span(text)));
  for (std::size_t i = 0; i < 8; ++i)
    manifest[description_checksum_at + i] = static_cast<std::byte>(sum >> (8 * i));
}

}  // namespace

StoreFiles store_files(std::span<const std::byte> input) {
  if (input.size() < head_bytes) return {};
  auto rest = input;
  const auto flags = static_cast<std::uint8_t>(take(rest, 1)[0]);
  const std::size_t length = take_length(rest), second_length = take_length(rest);
  StoreFiles files;
  files.description = as_text(take(rest, length));
  files.second_description = as_text(take(rest, second_length));
  files.manifest = {rest.begin(), rest.end()};
  if ((flags & seal_description) != 0) {
    files.description = resealed_json(files.description);
    if (!files.second_description.empty())
      files.second_description = resealed_json(files.second_description);
  }
  if ((flags & match_description) != 0) match(files.manifest, files.description);
  if ((flags & seal_both) != 0) seal_manifest(files.manifest);
  return files;
}

std::vector<Bytes> description_seeds() {
  std::vector<Bytes> seeds;
  for (const StoreDescription& store : descriptions())
    seeds.push_back(bytes_of(store_json(store, 0)));
  return seeds;
}

std::vector<Bytes> manifest_seeds() {
  std::vector<Bytes> seeds;
  for (const StoreDescription& store : descriptions())
    for (const bool is_committed : {false, true})
      seeds.push_back(encode(manifest_of(store, is_committed)));
  return seeds;
}

std::vector<Bytes> store_seeds() {
  std::vector<Bytes> seeds;
  for (const StoreDescription& store : descriptions())
    for (const bool is_committed : {false, true}) seeds.push_back(store_input(store, is_committed));
  return seeds;
}

}  // namespace strata::testing
