// store.json and the manifest are hostile until checked.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "io/store/manifest.hpp"
#include "io/store/json_seal.hpp"
#include "io/store/store_json.hpp"
#include "support/sanitizers.hpp"
#include "unit/io/shard_store_testing.hpp"

namespace strata::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

StoreDescription small_store(StoreKind kind = StoreKind::versioned) {
  StoreDescription store = describe_store(small_spec(kind, {"/mnt/a", "/mnt/b"}, 5), Checksums::on);
  lay_out(store, 4096);
  return store;
}

std::string refusal(const std::string& text) {
  return error_of<FormatError>([&] { parse_store_json(text, "/x/store.json"); });
}

// What is said of the description of a small store in which one text stands for another.
std::string refusal_with(const std::string& from, const std::string& to) {
  std::string text = store_json(small_store(), 1);
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  return refusal(resealed_json(text));
}

TEST(StoreJson, ComesBackAsItWas) {
  for (const StoreKind kind : {StoreKind::scratch, StoreKind::versioned}) {
    const StoreDescription store = small_store(kind);
    const std::string text = store_json(store, 1);
    const PartDescription read = parse_store_json(text, "x");
    EXPECT_EQ(read.part, 1u);
    EXPECT_EQ(store_json(read.store, 1), text);
    EXPECT_EQ(read.store.tiles[3].tile.name, store.tiles[3].tile.name);
    EXPECT_EQ(read.store.tiles[3].offsets, store.tiles[3].offsets);
    EXPECT_TRUE(nlohmann::json::accept(text));
  }
}

TEST(StoreJson, NamesFileAndFault) {
  EXPECT_THAT(refusal(""), AllOf(HasSubstr("/x/store.json"), HasSubstr("no JSON")));
  EXPECT_THAT(refusal("[]"), HasSubstr("no JSON object"));
  EXPECT_THAT(refusal("{}"), HasSubstr("'format' is missing"));
  EXPECT_THAT(refusal(std::string(100000, '[')), HasSubstr("nested too deeply"));
  EXPECT_THAT(refusal_with("strata store", "strata stone"), HasSubstr("not describe a store"));
  EXPECT_THAT(refusal_with("\"format_version\": 1", "\"format_version\": 2"),
              HasSubstr("version 2"));
  EXPECT_THAT(refusal_with("versioned", "wersioned"), HasSubstr("unknown kind 'wersioned'"));
  EXPECT_THAT(refusal_with("\"id\": \"", "\"id\": \"g"), HasSubstr("32 hex digits"));
  EXPECT_THAT(refusal_with("\"part\": 1", "\"part\": 2"), HasSubstr("'part' is 2"));
  EXPECT_THAT(refusal_with("\"alignment\": 4096", "\"alignment\": 0"), HasSubstr("'alignment'"));
  EXPECT_THAT(refusal_with("\"alignment\": 4096", "\"alignment\": 4097"),
              HasSubstr("power of two"));
  EXPECT_THAT(refusal_with("\"checksums\": true", "\"checksums\": 1"), HasSubstr("'checksums'"));
}

TEST(StoreJson, NamesTheTileThatIsWrong) {
  EXPECT_THAT(refusal_with("moment1/block.1 tile 0", "moment1/block.3 tile 0"),
              HasSubstr("two tiles are named 'moment1/block.3 tile 0'"));
  EXPECT_THAT(refusal_with("\"bytes\":4196,\"drive\":1", "\"bytes\":4196,\"drive\":2"),
              AllOf(HasSubstr("tiles[1]"), HasSubstr("'drive' is 2")));
  EXPECT_THAT(refusal_with("\"bytes\":4196", "\"bytes\":-1"), HasSubstr("no whole number"));
  EXPECT_THAT(refusal_with("\"bytes\":4196", "\"bytes\":1.5"), HasSubstr("no whole number"));
  EXPECT_THAT(refusal_with("\"bytes\":4196", "\"bytes\":0"), HasSubstr("'bytes' is 0"));
  EXPECT_THAT(refusal_with("\"bytes\":4196", "\"bytes\":18446744073709551615"),
              HasSubstr("'bytes' is 18446744073709551615"));
  EXPECT_THAT(refusal_with("\"bytes\":4196", "\"bytes\":18446744073709551616"),
              HasSubstr("no whole number"));
  EXPECT_THAT(refusal_with("[0,8192]", "[0]"), HasSubstr("1 offsets"));
  EXPECT_THAT(refusal_with("[0,8192]", "[0,4096]"), HasSubstr("overlap at offset 4096"));
  EXPECT_THAT(refusal_with("[0,8192]", "[0,8193]"), HasSubstr("not within"));
  EXPECT_THAT(refusal_with("[0,8192]", "[0,18446744073709547520]"), HasSubstr("not within"));
  EXPECT_THAT(refusal_with("[0,8192]", "[0,{}]"), HasSubstr("no whole number"));
}

// A parser that looks through all tiles at each of them would take minutes.
TEST(StoreJson, IsReadInATimeProportionalToItsTiles) {
  StoreSpec spec;
  spec.directories = {"/mnt/a"};
  for (int i = 0; i < rounds(100000, 10000); ++i)
    spec.tiles.push_back({"master/" + std::to_string(i), 4096, 0});
  StoreDescription store = describe_store(spec, Checksums::off);
  lay_out(store, 4096);
  EXPECT_EQ(parse_store_json(store_json(store, 0), "x").store.tiles.size(), spec.tiles.size());
}

TEST(StoreJson, HasOneSpelling) {
  EXPECT_THAT(refusal_with("\"part\": 1", "\"part\":  1"), HasSubstr("as Strata writes it"));
  EXPECT_THAT(refusal_with("\"part\": 1", "\"part\": 1,\n \"more\": 2"),
              HasSubstr("as Strata writes it"));
  EXPECT_THAT(refusal_with("\"part\": 1", "\"part\": 0,\n \"part\": 1"),
              HasSubstr("as Strata writes it"));
}

TEST(StoreJson, HasAChecksumOfAllThatIsBeforeIt) {
  std::string text = store_json(small_store(), 0);
  text.replace(text.find("/mnt/a"), 6, "/mnt/c");
  EXPECT_THAT(refusal(text), HasSubstr("checksum does not match"));
}

TEST(StoreDescription, LaysTilesOutWithoutGapsOrOverlaps) {
  const StoreDescription store = small_store();
  EXPECT_EQ(store.tiles[0].offsets, (std::array<std::uint64_t, 2>{0, 4096}));
  EXPECT_EQ(store.tiles[2].offsets, (std::array<std::uint64_t, 2>{8192, 8192 + 12288}));
  EXPECT_EQ(store.drives[0].bytes, 2 * (4096u + 12288 + 8192));
  EXPECT_EQ(store.drives[1].bytes, 2 * (8192u + 4096));
}

Manifest small_manifest() {
  Manifest manifest;
  manifest.version = 0x1122334455667788;
  manifest.note = "step 7";
  manifest.description_checksum = 99;
  manifest.tiles = {{0, 1}, {1, ~std::uint64_t{0}}, {}};
  return manifest;
}

TEST(Manifest, ComesBackAsItWas) {
  const Manifest read = decode_manifest(encode(small_manifest()), "m");
  EXPECT_EQ(read.version, small_manifest().version);
  EXPECT_EQ(read.note, "step 7");
  EXPECT_EQ(read.description_checksum, 99u);
  ASSERT_EQ(read.tiles.size(), 3u);
  EXPECT_EQ(read.tiles[1].place, 1);
  EXPECT_EQ(read.tiles[1].checksum, ~std::uint64_t{0});
  EXPECT_FALSE(read.tiles[2].written());
}

TEST(Manifest, IsLittleEndianAndCompact) {
  const auto bytes = encode(small_manifest());
  EXPECT_EQ(bytes.size(), 48u + 6 + 3 * 9 + 8);
  EXPECT_EQ(bytes[16], std::byte{0x88});
  EXPECT_LE(bytes.size(), manifest_bytes_max(3));
}

std::string refusal_of(std::vector<std::byte> bytes) {
  return error_of<FormatError>([&] { decode_manifest(bytes, "/x/manifest"); });
}

// One byte of a manifest changed, its checksum made right again.
std::string refusal_with(std::size_t at, int value) {
  auto bytes = encode(small_manifest());
  bytes[at] = static_cast<std::byte>(value);
  seal_manifest(bytes);
  return refusal_of(bytes);
}

TEST(Manifest, NamesFileAndFault) {
  EXPECT_THAT(refusal_of({}), AllOf(HasSubstr("/x/manifest"), HasSubstr("too few")));
  EXPECT_THAT(refusal_with(0, 'X'), HasSubstr("no manifest"));
  EXPECT_THAT(refusal_with(8, 2), HasSubstr("version 2"));
  EXPECT_THAT(refusal_with(12, 2), HasSubstr("unknown flags"));
  EXPECT_THAT(refusal_with(12, 0), HasSubstr("says that it has none"));
  EXPECT_THAT(refusal_with(32, 7), HasSubstr("do not fill"));
  EXPECT_THAT(refusal_with(39, 0xff), HasSubstr("note"));
  EXPECT_THAT(refusal_with(40, 4), HasSubstr("4 tiles"));
  EXPECT_THAT(refusal_with(47, 0xff), HasSubstr("tiles"));
  EXPECT_THAT(refusal_with(54, 2), HasSubstr("tile 0 is said to be in place 2"));
  EXPECT_THAT(refusal_with(54 + 9, 255), HasSubstr("tile 1"));
}

TEST(Manifest, FindsEveryByteThatIsNotWhatWasWritten) {
  const auto whole = encode(small_manifest());
  for (std::size_t at = 0; at < whole.size(); ++at) {
    auto bytes = whole;
    bytes[at] ^= std::byte{0x40};
    EXPECT_NE(refusal_of(bytes), "no error") << at;
    EXPECT_NE(refusal_of({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(at)}),
              "no error")
        << at;
  }
}

}  // namespace
}  // namespace strata::testing
