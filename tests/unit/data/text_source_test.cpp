#include "strata/data/text_source.hpp"

#include <gmock/gmock.h>
#include <xxhash.h>

#include "strata/core/error.hpp"
#include "unit/data/shard_files.hpp"

namespace strata {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TextSource read_text(const std::string& text, TextSourceOptions options = {}) {
  const auto path = temporary_path("source");
  write_bytes(path, text);
  return read_text_source(std::vector{path}, options);
}

std::vector<std::string> texts(const TextSource& source) {
  std::vector<std::string> result;
  for (const auto& document : source.documents) result.push_back(byte_detokenize(document.tokens));
  return result;
}

constexpr TextSourceOptions jsonl = {.format = TextFormat::jsonl};

TEST(TextSource, SplitsAtBlankLines) {
  EXPECT_THAT(texts(read_text("\n\na\nb\n\n \t\r\nc\n\n")), ElementsAre("a\nb", "c"));
}

TEST(TextSource, TakesAWholeFileAsOneDocument) {
  const TextSourceOptions whole = {.separator = DocumentSeparator::file};
  EXPECT_THAT(texts(read_text("a\n\nb\n", whole)), ElementsAre("a\n\nb\n"));
  EXPECT_THAT(texts(read_text("", whole)), ElementsAre());
}

TEST(TextSource, MasksThePromptAndTrainsTheEnd) {
  const TextSource source = read_text(R"({"prompt": "ab", "completion": "c"})", jsonl);
  EXPECT_THAT(texts(source), ElementsAre("abc"));
  EXPECT_EQ(source.documents[0].trained, (std::vector<bool>{false, false, true, true}));
}

TEST(TextSource, StopsAtDocumentsMax) {
  EXPECT_THAT(texts(read_text("a\n\nb\n\nc", {.documents_max = 2})), ElementsAre("a", "b"));
}

TEST(TextSource, HashesAllFilesInOrder) {
  const auto first = temporary_path("1"), second = temporary_path("2");
  write_bytes(first, "one\n\n");
  write_bytes(second, "two");
  const TextSource source = read_text_source(std::vector{first, second});
  EXPECT_EQ(source.hash, XXH3_64bits("one\n\ntwo", 8));
  EXPECT_THAT(texts(source), ElementsAre("one", "two"));
}

void expect_refused(const std::string& line, const std::string& reason) {
  try {
    read_text("{\"text\": \"good\"}\n" + line, jsonl);
    FAIL() << line;
  } catch (const FormatError& error) {
    EXPECT_THAT(error.what(), HasSubstr("source:2: "));
    EXPECT_THAT(error.what(), HasSubstr(reason));
  }
}

TEST(TextSource, NamesFileLineAndReasonOfBadRecords) {
  expect_refused("{\"text\": ", "not JSON");
  expect_refused("{\"text\": \"\xff\"}", "not JSON");
  expect_refused(std::string(100'000, '['), "not JSON");
  expect_refused("[1]", "must be a JSON object");
  expect_refused("{\"text\": 5}", "'text' must be a string");
  expect_refused("{\"prompt\": \"a\"}", "'completion' must be a string");
  expect_refused("{\"messages\": []}", "chat 'messages'");
  expect_refused("{\"body\": \"a\"}", "needs 'text'");
}

TEST(TextSource, NamesAFileThatIsAbsent) {
  EXPECT_THROW(read_text_source(std::vector{temporary_path("absent")}), SystemError);
}

}  // namespace
}  // namespace strata
