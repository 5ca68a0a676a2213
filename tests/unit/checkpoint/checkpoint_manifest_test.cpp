// checkpoint.json: one spelling, and everything else is refused by name.

#include "src/checkpoint/checkpoint_manifest.hpp"

#include <nlohmann/json.hpp>

#include "io/store/json_seal.hpp"
#include "unit/checkpoint/checkpoint_testing.hpp"
#include "unit/checkpoint/state_checkpoint_testing.hpp"

namespace strata::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

CheckpointManifest small_manifest() {
  return {.strata_version = "0.1.0",
          .note = note_of_step(20),
          .vectors = {{Role::master, "a", DType::f32, 5000}, {Role::moment1, "a", DType::q8, 10}},
          .pieces = {{0, 0, 4096, 1}, {0, 4096, 904, ~std::uint64_t{0}}, {1, 0, 10, 3}}};
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

// What is said of a manifest in which one thing is changed and the checksum made right.
std::string refusal(const std::string& from, const std::string& to,
                    const CheckpointManifest& manifest = small_manifest()) {
  const std::string text = resealed_json(replaced(checkpoint_json(manifest), from, to));
  return error_of<FormatError>([&] { parse_checkpoint_json(text, "x/checkpoint.json"); });
}

TEST(CheckpointManifest, IsReadAsItWasWritten) {
  const CheckpointManifest manifest = small_manifest();
  const std::string text = checkpoint_json(manifest);
  const CheckpointManifest read = parse_checkpoint_json(text, "checkpoint.json");
  EXPECT_EQ(read.strata_version, manifest.strata_version);
  EXPECT_EQ(read.note, manifest.note);
  EXPECT_EQ(read.vectors, manifest.vectors);
  ASSERT_EQ(read.pieces.size(), 3u);
  EXPECT_EQ(read.pieces[1].first, 4096);
  EXPECT_EQ(read.pieces[1].count, 904);
  EXPECT_EQ(read.pieces[1].checksum, ~std::uint64_t{0});
  EXPECT_EQ(read.pieces[2].vector, 1);
  EXPECT_EQ(text.size() % 4096, 0u) << "to be read directly";
}

TEST(CheckpointManifest, IsPlainJson) {
  const auto json = nlohmann::json::parse(checkpoint_json(small_manifest()));
  EXPECT_EQ(json["vectors"][0]["file"], "00000-master.bin");
  EXPECT_EQ(json["vectors"][0]["pieces"][0]["xxh3"], "0000000000000001");
  EXPECT_EQ(json["data_seed"].get<std::uint64_t>(), ~std::uint64_t{0});
}

TEST(CheckpointManifest, HoldsTheHeldOutLossToTheBit) {
  CheckpointManifest manifest = small_manifest();
  EXPECT_EQ(checkpoint_json(manifest).find("held_out"), std::string::npos) << "there is none";
  for (const double loss : {2.0, 0.1 + 0.2, 5e-324, 1e300, 0.0}) {
    manifest.note.held_out = {loss, "h1"};
    const std::string text = checkpoint_json(manifest);
    EXPECT_EQ(nlohmann::json::parse(text)["held_out_loss"].get<double>(), loss);
    EXPECT_EQ(parse_checkpoint_json(text, "checkpoint.json").note, manifest.note);
  }
}

TEST(CheckpointManifest, IsRefusedWhenAHeldOutLossCannotBe) {
  CheckpointManifest manifest = small_manifest();
  manifest.note.held_out = {2.5, "h1"};
  const auto refused = [&](const std::string& from, const std::string& to) {
    return refusal(from, to, manifest);
  };
  EXPECT_THAT(refused("2.5", "null"), HasSubstr("'held_out_loss' is no number"));
  EXPECT_THAT(refused("2.5", "\"2.5\""), HasSubstr("'held_out_loss' is no number"));
  EXPECT_THAT(refused("2.5", "1e999"), HasSubstr("no JSON"));
  EXPECT_THAT(refused("2.5", "2.50"), HasSubstr("not as Strata writes it"));
  EXPECT_THAT(refused("held_out_fingerprint", "held_out_fingerprints"), HasSubstr("is missing"));
  EXPECT_THAT(refused("held_out_loss", "held_out_los"), HasSubstr("not as Strata writes it"));
}

TEST(CheckpointManifest, HoldsManyPieces) {
  CheckpointManifest manifest = small_manifest();
  constexpr std::int64_t count = 100'000;
  manifest.vectors[0].count = count * norm_chunk_elements;
  manifest.pieces = {{1, 0, 10, 3}};
  for (std::int64_t i = 0; i < count; ++i)
    manifest.pieces.push_back({0, i * norm_chunk_elements, norm_chunk_elements, 7});
  std::ranges::rotate(manifest.pieces, manifest.pieces.begin() + 1);
  const std::string text = checkpoint_json(manifest);
  EXPECT_EQ(parse_checkpoint_json(text, "checkpoint.json").pieces.size(), 100'001u);
}

TEST(CheckpointManifest, OfAnotherFormatVersionIsRefusedByName) {
  for (const char* version : {"0", "2", "18446744073709551615"})
    EXPECT_THAT(refusal("\"format_version\": 1", std::string("\"format_version\": ") + version),
                AllOf(HasSubstr("x/checkpoint.json"), HasSubstr("has format version "),
                      HasSubstr(version), HasSubstr("this program reads format version 1 only")));
}

TEST(CheckpointManifest, OfSomethingElseIsRefused) {
  EXPECT_THAT(refusal("strata checkpoint", "strata store"), HasSubstr("does not describe"));
  EXPECT_THAT(error_of<FormatError>([] { parse_checkpoint_json("{}", "x"); }),
              HasSubstr("'format' is missing"));
  EXPECT_THAT(error_of<FormatError>([] { parse_checkpoint_json("[1]", "x"); }),
              HasSubstr("no JSON object"));
  EXPECT_THAT(error_of<FormatError>([] { parse_checkpoint_json("", "x"); }), HasSubstr("no JSON"));
}

TEST(CheckpointManifest, WhoseChecksumIsWrongIsRefused) {
  const std::string text =
      replaced(checkpoint_json(small_manifest()), "\"step\": 20", "\"step\": 21");
  EXPECT_THAT(error_of<FormatError>([&] { parse_checkpoint_json(text, "x"); }),
              HasSubstr("its checksum does not match"));
}

TEST(CheckpointManifest, IsRefusedWhenAValueCannotBe) {
  EXPECT_THAT(refusal("\"step\": 20", "\"step\": -20"), HasSubstr("'step' is no whole number"));
  EXPECT_THAT(refusal("\"seed\": 42", "\"sead\": 42"), HasSubstr("'seed' is missing"));
  EXPECT_THAT(refusal("\"master\"", "\"gradient\""), HasSubstr("vectors[0]: its role is none"));
  EXPECT_THAT(refusal("\"f32\"", "\"f33\""), HasSubstr("vectors[0]: its dtype is unknown"));
  EXPECT_THAT(refusal("\"count\":10,", "\"count\":0,"), HasSubstr("vectors[1]: 'count' is 0"));
  EXPECT_THAT(refusal("0000000000000001", "00000000000000G1"), HasSubstr("not hex digits"));
  EXPECT_THAT(refusal("0000000000000001", "000000000000001"), HasSubstr("not 16 hex digits"));
}

TEST(CheckpointManifest, IsRefusedUnlessPiecesCoverTheirVectors) {
  EXPECT_THAT(refusal("\"count\":904", "\"count\":903"),
              HasSubstr("pieces[1]: it ends within a chunk of 4096 elements"));
  EXPECT_THAT(refusal("\"count\":4096,", "\"count\":5000,"),
              HasSubstr("pieces[1]: it lies behind the 5000 elements"));
  EXPECT_THAT(refusal("\"count\":5000,", "\"count\":9096,"),
              HasSubstr("pieces[1]: it ends within a chunk"));
  EXPECT_THAT(refusal("\"count\":904", "\"count\":905"), HasSubstr("must be from 1 to 904"));
  EXPECT_THAT(refusal("\"count\":4096,", "\"count\":4097,"), HasSubstr("ends within a chunk"));
}

TEST(CheckpointManifest, IsRefusedWhenAVectorIsThereTwice) {
  EXPECT_THAT(refusal("\"role\":\"moment1\"", "\"role\":\"master\""),
              HasSubstr("vector \"master/a\" is there twice"));
}

TEST(CheckpointManifest, IsRefusedInAnotherSpelling) {
  EXPECT_THAT(refusal("\"step\": 20", "\"step\":  20"), HasSubstr("not as Strata writes it"));
  EXPECT_THAT(refusal("\"step\": 20", "\"extra\": 1, \"step\": 20"),
              HasSubstr("not as Strata writes it"));
  EXPECT_THAT(refusal("\"seed\": 42", "\"seed\": 42, \"seed\": 42"),
              HasSubstr("not as Strata writes it"));
  EXPECT_THAT(refusal("00000-master.bin", "../../secret.bin"),
              HasSubstr("not as Strata writes it"));
}

}  // namespace
}  // namespace strata::testing
