#include <sys/stat.h>

#include "checkpoint_testing.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

using ::testing::HasSubstr;

// Opens a file with this header over this many bytes of data and returns the complaint.
std::string complaint(const std::string& header, std::size_t data_bytes) {
  const TempFolder folder;
  const auto path = folder / "hostile.safetensors";
  write_raw_safetensors(path, header, data_bytes);
  const std::string text = error_of<FormatError>([&] { SafetensorsReader reader(path); });
  EXPECT_THAT(text, HasSubstr("hostile.safetensors"));
  return text;
}

std::string entry(const std::string& name, const std::string& shape, const std::string& offsets,
                  const std::string& dtype = "F32") {
  return "\"" + name + R"(":{"dtype":")" + dtype + R"(","shape":[)" + shape +
         R"(],"data_offsets":[)" + offsets + "]}";
}

TEST(SafetensorsReader, ListsTensorsInFileOrderWithMetadata) {
  const TempFolder folder;
  const auto path = folder / "a.safetensors";
  write_raw_safetensors(path,
                        R"({"__metadata__":{"format":"pt"},)" + entry("b", "2,1", "4,12") + "," +
                            entry("a", "", "0,4") + "}   ",
                        12);
  const SafetensorsReader reader(path);
  ASSERT_EQ(reader.tensors().size(), 2u);
  EXPECT_EQ(reader.tensors()[0].name, "a");
  EXPECT_EQ(reader.tensors()[0].count(), 1);  // rank 0
  EXPECT_EQ(reader.tensors()[1].shape, (std::vector<std::int64_t>{2, 1}));
  EXPECT_EQ(reader.metadata().at("format"), "pt");
  EXPECT_EQ(reader.find("b"), &reader.tensors()[1]);
  EXPECT_EQ(reader.find("c"), nullptr);
}

TEST(SafetensorsReader, AcceptsAnEmptyTensorBetweenOthers) {
  const TempFolder folder;
  const auto path = folder / "a.safetensors";
  write_raw_safetensors(path,
                        "{" + entry("z", "1", "0,4") + "," + entry("empty", "3,0", "4,4") + "," +
                            entry("a", "1", "4,8") + "}",
                        8);
  const SafetensorsReader reader(path);
  EXPECT_EQ(reader.tensors()[1].name, "empty");
  EXPECT_EQ(reader.tensors()[1].count(), 0);
}

TEST(SafetensorsReader, ReadsARangeOfATensor) {
  const TempFolder folder;
  const auto path = folder / "a.safetensors";
  write_f32_safetensors(path, {{"w", {2, 3}, {0, 1, 2, 3, 4, 5}}});
  const SafetensorsReader reader(path);
  std::vector<float> values(3);
  reader.read(*reader.find("w"), 2, 3, std::as_writable_bytes(std::span(values)));
  EXPECT_EQ(values, (std::vector<float>{2, 3, 4}));
}

TEST(SafetensorsReader, ListsDtypesThatItRefusesToRead) {
  const TempFolder folder;
  const auto path = folder / "a.safetensors";
  write_raw_safetensors(
      path, "{" + entry("q", "2", "0,2", "F8_E4M3") + "," + entry("p", "4", "2,4", "F4") + "}", 4);
  const SafetensorsReader reader(path);
  EXPECT_EQ(reader.tensors()[0].dtype_text, "F8_E4M3");
  EXPECT_FALSE(reader.tensors()[0].dtype.has_value());
  std::vector<std::byte> target(2);
  const auto text = error_of<FormatError>([&] { reader.read(reader.tensors()[0], 0, 2, target); });
  EXPECT_THAT(text, HasSubstr("F8_E4M3"));
}

TEST(SafetensorsReader, RefusesAFileShorterThanItsLengthField) {
  const TempFolder folder;
  write_bytes(folder / "a", "1234567");
  EXPECT_THAT(error_of<FormatError>([&] { SafetensorsReader reader(folder / "a"); }),
              HasSubstr("too few"));
}

TEST(SafetensorsReader, RefusesAHeaderLengthNearTwoToThe64) {
  const TempFolder folder;
  for (const std::uint64_t length :
       {~std::uint64_t{0}, ~std::uint64_t{0} - 7, std::uint64_t{1} << 63}) {
    write_bytes(folder / "a", length_prefix(length) + "{}");
    EXPECT_THAT(error_of<FormatError>([&] { SafetensorsReader reader(folder / "a"); }),
                HasSubstr(std::to_string(length)));
  }
}

TEST(SafetensorsReader, RefusesAHeaderAboveTheFormatsLimitEvenIfTheFileHoldsIt) {
  const TempFolder folder;
  write_bytes(folder / "a", length_prefix(100'000'001) + "{}");
  std::filesystem::resize_file(folder / "a", 100'000'100);  // sparse
  EXPECT_THAT(error_of<FormatError>([&] { SafetensorsReader reader(folder / "a"); }),
              HasSubstr("100000000"));
}

TEST(SafetensorsReader, RefusesAHeaderLongerThanTheFile) {
  const TempFolder folder;
  write_bytes(folder / "a", length_prefix(3) + "{}");
  EXPECT_THAT(error_of<FormatError>([&] { SafetensorsReader reader(folder / "a"); }),
              HasSubstr("the file has only"));
}

TEST(SafetensorsReader, RefusesWhatIsNoRegularFile) {
  const TempFolder folder;
  ASSERT_EQ(::mkfifo((folder / "fifo").c_str(), 0600), 0);
  EXPECT_THAT(error_of<FormatError>([&] { SafetensorsReader reader(folder / "fifo"); }),
              HasSubstr("not a regular file"));
  EXPECT_THAT(error_of<FormatError>([&] { SafetensorsReader reader(folder.path()); }),
              HasSubstr("not a regular file"));
}

TEST(SafetensorsReader, NamesAFileThatDoesNotExist) {
  const TempFolder folder;
  EXPECT_THAT(error_of<SystemError>([&] { SafetensorsReader reader(folder / "none"); }),
              HasSubstr("none"));
}

TEST(SafetensorsReader, RefusesAHeaderThatIsNoObject) {
  EXPECT_THAT(complaint("", 0), HasSubstr("begin"));
  EXPECT_THAT(complaint("[]", 0), HasSubstr("begin"));
  EXPECT_THAT(complaint(" {}", 0), HasSubstr("begin"));
  EXPECT_THAT(complaint("{", 0), HasSubstr("JSON"));
  EXPECT_THAT(complaint("{}x", 0), HasSubstr("JSON"));
}

TEST(SafetensorsReader, RefusesTextHiddenBehindANulByte) {
  EXPECT_THAT(complaint(std::string("{}\0{}", 5), 0), HasSubstr("NUL"));
}

TEST(SafetensorsReader, RefusesTextThatIsNotUtf8) {
  EXPECT_THAT(complaint("{" + entry("bad\xff\xfe", "1", "0,4") + "}", 4), HasSubstr("UTF-8"));
}

TEST(SafetensorsReader, RefusesDeepNesting) {
  EXPECT_THAT(complaint("{\"a\":" + std::string(100'000, '['), 0), HasSubstr("deeper"));
}

TEST(SafetensorsReader, RefusesDuplicateNames) {
  EXPECT_THAT(complaint("{" + entry("w", "1", "0,4") + "," + entry("w", "1", "4,8") + "}", 8),
              HasSubstr("duplicate key \"w\""));
  EXPECT_THAT(complaint(R"({"__metadata__":{"a":"1","a":"2"}})", 0), HasSubstr("duplicate"));
}

TEST(SafetensorsReader, RefusesDuplicateFieldsOfOneTensor) {
  EXPECT_THAT(
      complaint(R"({"w":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4),
      HasSubstr("duplicate key \"dtype\""));
}

TEST(SafetensorsReader, SeesADuplicateThroughEscapes) {
  EXPECT_THAT(complaint("{" + entry("w", "1", "0,4") + "," + entry("\\u0077", "1", "4,8") + "}", 8),
              HasSubstr("duplicate"));
}

TEST(SafetensorsReader, RefusesGapsAndOverlaps) {
  EXPECT_THAT(complaint("{" + entry("a", "1", "4,8") + "}", 8), HasSubstr("a gap"));
  EXPECT_THAT(complaint("{" + entry("a", "1", "0,4") + "," + entry("b", "1", "8,12") + "}", 12),
              HasSubstr("a gap"));
  EXPECT_THAT(complaint("{" + entry("a", "2", "0,8") + "," + entry("b", "1", "4,8") + "}", 8),
              HasSubstr("an overlap"));
  EXPECT_THAT(complaint("{" + entry("a", "1", "0,4") + "," + entry("b", "1", "0,4") + "}", 4),
              HasSubstr("an overlap"));
}

TEST(SafetensorsReader, RefusesDataThatDoesNotEndAtTheEndOfTheFile) {
  EXPECT_THAT(complaint("{" + entry("a", "2", "0,8") + "}", 7), HasSubstr("cut short"));
  EXPECT_THAT(complaint("{" + entry("a", "2", "0,8") + "}", 9), HasSubstr("too long"));
  EXPECT_THAT(complaint("{}", 1), HasSubstr("too long"));
}

TEST(SafetensorsReader, RefusesOffsetsThatAreNoRange) {
  EXPECT_THAT(complaint("{" + entry("a", "1", "4,0") + "}", 4), HasSubstr("backwards"));
  EXPECT_THAT(complaint("{" + entry("a", "1", "-4,0") + "}", 4), HasSubstr("data_offsets"));
  EXPECT_THAT(complaint("{" + entry("a", "1", "0,4.0") + "}", 4), HasSubstr("data_offsets"));
  EXPECT_THAT(complaint("{" + entry("a", "1", "0,4,8") + "}", 4), HasSubstr("data_offsets"));
  EXPECT_THAT(complaint("{" + entry("a", "1", "0,18446744073709551620") + "}", 4),
              HasSubstr("data_offsets"));
  EXPECT_THAT(
      complaint("{" + entry("a", "1", "18446744073709551612,18446744073709551615") + "}", 4),
      HasSubstr("bytes of data"));
}

TEST(SafetensorsReader, RefusesShapesWhoseSizeOverflows) {
  EXPECT_THAT(complaint("{" + entry("a", "4294967296,4294967296", "0,0") + "}", 0),
              HasSubstr("overflows"));
  EXPECT_THAT(complaint("{" + entry("a", "9223372036854775807,3", "0,4") + "}", 4),
              HasSubstr("overflows"));
  EXPECT_THAT(complaint("{" + entry("a", "18446744073709551615", "0,4") + "}", 4),
              HasSubstr("whole number"));
  EXPECT_THAT(complaint("{" + entry("a", "-1", "0,4") + "}", 4), HasSubstr("whole number"));
}

TEST(SafetensorsReader, RefusesAHugeRank) {
  std::string ones = "1";
  for (int i = 0; i < 64; ++i) ones += ",1";
  EXPECT_THAT(complaint("{" + entry("a", ones, "0,4") + "}", 4), HasSubstr("65 dimensions"));
}

TEST(SafetensorsReader, RefusesDataThatDoesNotFitTheShape) {
  EXPECT_THAT(complaint("{" + entry("a", "3", "0,8") + "}", 8), HasSubstr("F32 [3] takes 12"));
  EXPECT_THAT(complaint("{" + entry("a", "3", "0,1", "F4") + "}", 1), HasSubstr("byte boundary"));
}

TEST(SafetensorsReader, RefusesAnUnknownDtypeByName) {
  EXPECT_THAT(complaint("{" + entry("a", "1", "0,4", "F33") + "}", 4), HasSubstr("\"F33\""));
}

TEST(SafetensorsReader, RefusesFieldsOfTheWrongType) {
  EXPECT_THAT(complaint(R"({"a":3})", 0), HasSubstr("no object"));
  EXPECT_THAT(complaint(R"({"a":{"dtype":"F32","shape":[1]}})", 4), HasSubstr("data_offsets"));
  EXPECT_THAT(complaint(R"({"a":{"shape":[1],"data_offsets":[0,4]}})", 4), HasSubstr("dtype"));
  EXPECT_THAT(complaint(R"({"a":{"dtype":1,"shape":[1],"data_offsets":[0,4]}})", 4),
              HasSubstr("dtype"));
  EXPECT_THAT(complaint(R"({"a":{"dtype":"F32","shape":1,"data_offsets":[0,4]}})", 4),
              HasSubstr("shape"));
  EXPECT_THAT(complaint(R"({"__metadata__":[]})", 0), HasSubstr("__metadata__"));
  EXPECT_THAT(complaint(R"({"__metadata__":{"a":1}})", 0), HasSubstr("__metadata__"));
}

TEST(SafetensorsReader, KeepsControlCharactersOutOfItsMessages) {
  const std::string text = complaint("{" + entry("\\u001b[2J", "1", "4,8") + "}", 8);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

TEST(SafetensorsReader, ReportsAFileTruncatedWhileOpen) {
  const TempFolder folder;
  write_f32_safetensors(folder / "a", {{"w", {4}, {0, 1, 2, 3}}});
  const SafetensorsReader reader(folder / "a");
  std::filesystem::resize_file(folder / "a", std::filesystem::file_size(folder / "a") - 4);
  std::vector<std::byte> target(16);
  EXPECT_THAT(error_of<FormatError>([&] { reader.read(*reader.find("w"), 0, 4, target); }),
              HasSubstr("truncated"));
}

}  // namespace
}  // namespace strata
