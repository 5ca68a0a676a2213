// What a reader should never have to point out. A rule that the tree does not keep yet has a number
// that may only fall.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "source_tree.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;
using ::testing::IsEmpty;

constexpr std::size_t columns_max = 120, lines_max = 500;
// Ratchets: lower them when the tree gets better, never raise them.
constexpr std::size_t long_lines_allowed = 45;

const std::vector<std::string> folders{"include", "src",     "io",   "kernels", "tests", "bench",
                                       "scripts", "configs", "docs", "cmake",   ".ci"};

bool is_code(const fs::path& file) {
  return has_extension(file, {".hpp", ".h", ".cpp", ".cu", ".cuh", ".py", ".cmake"});
}
bool is_script(const fs::path& file) {
  return file.extension().empty() && *file.begin() == "scripts";
}
bool is_text(const fs::path& file) {
  return is_code(file) || is_script(file) ||
         has_extension(file, {".md", ".txt", ".yaml", ".yml", ".sh"});
}

std::vector<fs::path> text_files() {
  std::vector<fs::path> files;
  for (const fs::path& file : files_below(folders)) {
    if (is_text(file)) files.push_back(file);
  }
  for (const char* file : {"CMakeLists.txt", "README.md", "CONTRIBUTING.md", "CHANGELOG.md"}) {
    if (fs::exists(source_dir() / file)) files.emplace_back(file);
  }
  return files;
}

// UTF-8 continuation bytes take no column.
std::size_t columns(const std::string& line) {
  return static_cast<std::size_t>(std::ranges::count_if(
      line, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

bool has_tab(const std::string& line) { return line.find('\t') != std::string::npos; }
bool has_trailing_blank(const std::string& line) {
  return !line.empty() && (line.back() == ' ' || line.back() == '\r');
}
// Tables and addresses cannot be broken; what a program printed should not be.
bool is_long(const std::string& line) {
  return columns(line) > columns_max && !line.starts_with('|') &&
         line.find("://") == std::string::npos;
}
// Spelt in two halves so that this file keeps its own rule.
bool has_machine_path(const std::string& line) {
  for (const char* path : {"/wo"
                           "rk/",
                           "/ho"
                           "me/",
                           "/ro"
                           "ot/"}) {
    if (line.find(path) != std::string::npos) return true;
  }
  return false;
}

std::vector<std::string> places(const std::vector<fs::path>& files,
                                const std::function<bool(const std::string&)>& is_bad) {
  std::vector<std::string> found;
  for (const fs::path& file : files) {
    int number = 0;
    for (const std::string& line : lines_of(read_text(file))) {
      ++number;
      if (is_bad(line)) found.push_back(file.string() + ":" + std::to_string(number));
    }
  }
  return found;
}

TEST(Style, HasNoTabs) { EXPECT_THAT(places(text_files(), has_tab), IsEmpty()); }

TEST(Style, HasNoTrailingBlanks) {
  EXPECT_THAT(places(text_files(), has_trailing_blank), IsEmpty());
}

TEST(Style, NamesNoFolderOfOneMachine) {
  EXPECT_THAT(places(text_files(), has_machine_path), IsEmpty());
}

TEST(Style, HasNoLongLinesBeyondTheRatchet) {
  const std::vector<std::string> found = places(text_files(), is_long);
  std::string list;
  for (const std::string& place : found) list += place + "\n";
  EXPECT_LE(found.size(), long_lines_allowed) << list;
}

TEST(Style, EndsEveryFileWithOneNewline) {
  std::vector<std::string> bad;
  for (const fs::path& file : text_files()) {
    const std::string text = read_text(file);
    if (!text.empty() && (!text.ends_with('\n') || text.ends_with("\n\n")))
      bad.push_back(file.string());
  }
  EXPECT_THAT(bad, IsEmpty());
}

TEST(Style, BeginsHeadersWithPragmaOnce) {
  std::vector<std::string> bad;
  for (const fs::path& file : text_files()) {
    // Highway compiles an -inl.h once per target.
    if (file.string().ends_with("-inl.h")) continue;
    if (has_extension(file, {".hpp", ".h", ".cuh"}) &&
        !read_text(file).starts_with("#pragma once\n")) {
      bad.push_back(file.string());
    }
  }
  EXPECT_THAT(bad, IsEmpty());
}

TEST(Style, KeepsFilesShort) {
  std::vector<std::string> bad;
  for (const fs::path& file : text_files()) {
    if (is_code(file) && lines_of(read_text(file)).size() > lines_max) bad.push_back(file.string());
  }
  EXPECT_THAT(bad, IsEmpty());
}

TEST(Style, SeesWhatItLooksFor) {
  EXPECT_TRUE(has_tab("a\tb"));
  EXPECT_TRUE(has_trailing_blank("a "));
  EXPECT_TRUE(is_long(std::string(121, 'x')));
  EXPECT_FALSE(is_long(std::string(120, 'x')));
  EXPECT_FALSE(is_long("|" + std::string(200, 'x')));
  EXPECT_TRUE(
      has_machine_path("see /wo"
                       "rk/main"));
  EXPECT_EQ(columns("\xc3\xa9"), 1u);
  EXPECT_GT(text_files().size(), 30u);
}

}  // namespace
}  // namespace strata
