#include "checkpoint_testing.hpp"
#include "support/file_size_limit.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

using ::testing::HasSubstr;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

TEST(SafetensorsWriter, WritesTheReferenceWritersBytes) {
  const TempFolder folder;
  SafetensorsWriter writer(folder / "a", {{"b", DType::bf16, {2}},
                                          {"norm", DType::f32, {1}},
                                          {"a", DType::bf16, {1, 1}},
                                          {"none", DType::f32, {0, 7}}});
  writer.append(bytes_of("BbBb"));
  writer.append(bytes_of("FfFf"));
  writer.append(bytes_of("Aa"));
  writer.finish();
  // Wide types first, then by name; the header padded with spaces to 8 bytes.
  const std::string header = R"({"__metadata__":{"format":"pt"},)"
                             R"("none":{"dtype":"F32","shape":[0,7],"data_offsets":[0,0]},)"
                             R"("norm":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                             R"("a":{"dtype":"BF16","shape":[1,1],"data_offsets":[4,6]},)"
                             R"("b":{"dtype":"BF16","shape":[2],"data_offsets":[6,10]}})";
  const std::string padding((8 - header.size() % 8) % 8, ' ');
  EXPECT_EQ(read_bytes(folder / "a"),
            length_prefix(header.size() + padding.size()) + header + padding + "FfFfAaBbBb");
}

TEST(SafetensorsWriter, TakesPiecesThatCrossTensors) {
  const TempFolder folder;
  SafetensorsWriter writer(folder / "a", {{"b", DType::u8, {3}}, {"a", DType::u8, {4}}});
  for (const char* piece : {"b", "bba", "", "aaa"}) writer.append(bytes_of(piece));
  writer.finish();
  EXPECT_TRUE(read_bytes(folder / "a").ends_with("aaaabbb"));
}

TEST(SafetensorsWriter, WritesWhatTheReaderReads) {
  const TempFolder folder;
  write_f32_safetensors(folder / "a", {{"w", {2, 2}, {1, -2, 3, 4}}, {"scalar", {}, {9}}});
  const SafetensorsReader reader(folder / "a");
  float scalar = 0;
  reader.read(*reader.find("scalar"), 0, 1, std::as_writable_bytes(std::span(&scalar, 1)));
  EXPECT_EQ(scalar, 9);
  EXPECT_EQ(reader.metadata().at("format"), "pt");
}

TEST(SafetensorsWriter, WritesAFileWithoutTensors) {
  const TempFolder folder;
  SafetensorsWriter(folder / "a", {}).finish();
  EXPECT_TRUE(SafetensorsReader(folder / "a").tensors().empty());
}

TEST(SafetensorsWriter, EscapesNames) {
  const TempFolder folder;
  const std::string name = "quote\" slash\\ tab\t caf\xc3\xa9";
  write_f32_safetensors(folder / "a", {{name, {1}, {1}}});
  EXPECT_NE(SafetensorsReader(folder / "a").find(name), nullptr);
}

TEST(SafetensorsWriter, RemovesAnUnfinishedFile) {
  const TempFolder folder;
  {
    SafetensorsWriter writer(folder / "a", {{"w", DType::u8, {4}}});
    writer.append(bytes_of("ww"));
    EXPECT_TRUE(std::filesystem::exists(folder / "a"));
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "a"));
}

TEST(SafetensorsWriter, LeavesAnExistingFileAlone) {
  const TempFolder folder;
  write_bytes(folder / "a", "mine");
  error_of<SystemError>([&] { SafetensorsWriter writer(folder / "a", {}); });
  EXPECT_EQ(read_bytes(folder / "a"), "mine");
}

TEST(SafetensorsWriter, SurfacesAFailedWriteWithTheBytesFreeAndLeavesNothing) {
  const TempFolder folder;
  std::string text;
  {
    const FileSizeLimit limit(64 * 1024);
    text = error_of<SystemError>([&] {
      SafetensorsWriter writer(folder / "a", {{"w", DType::u8, {1 << 20}}});
      const std::vector<std::byte> piece(48 * 1024);
      for (int i = 0; i < 3; ++i) writer.append(piece);
    });
  }
  EXPECT_THAT(text, HasSubstr("bytes) free"));
  EXPECT_THAT(text, HasSubstr((folder / "a").string()));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(SafetensorsWriterDeathTest, StopsWhenBytesAreMissingOrTooMany) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const TempFolder folder;
  EXPECT_DEATH(SafetensorsWriter(folder / "few", {{"w", DType::u8, {1}}}).finish(), "invariant");
  EXPECT_DEATH(SafetensorsWriter(folder / "many", {}).append(bytes_of("x")), "invariant");
}

}  // namespace
}  // namespace strata
