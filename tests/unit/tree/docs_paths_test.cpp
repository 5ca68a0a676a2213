// Documentation that names a file of this repository must be right about it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>

#include "source_tree.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A path of ours, by its first folder or its name; `build/` is made, not kept.
bool is_repository_path(const std::string& text) {
  const auto is_plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '/' ||
           c == '-';
  };
  if (!std::ranges::all_of(text, is_plain)) return false;
  for (const char* folder : {"include/", "src/", "io/", "kernels/", "tests/", "bench/", "scripts/",
                             "configs/", "docs/", "cmake/", ".ci/"}) {
    if (text.starts_with(folder)) return true;
  }
  if (text.find('/') != std::string::npos || text.starts_with('.')) return false;
  return text.ends_with(".md") || text.ends_with(".cmake") || text == "LICENSE" ||
         text == "CMakeLists.txt" || text == "CMakePresets.json";
}

// "src/main.cpp:12" and "scripts/test --fast" name src/main.cpp and scripts/test.
std::string path_part(const std::string& code) { return code.substr(0, code.find_first_of(" :")); }

// Paths in backticks outside of fenced blocks.
std::vector<std::string> paths_in_code(const std::string& markdown) {
  std::vector<std::string> paths;
  bool is_fenced = false;
  for (const std::string& line : lines_of(markdown)) {
    if (line.find("```") != std::string::npos) is_fenced = !is_fenced;
    if (is_fenced || line.find("```") != std::string::npos) continue;
    std::size_t open = line.find('`'), close = 0;
    for (; open != std::string::npos; open = line.find('`', close + 1)) {
      close = line.find('`', open + 1);
      if (close == std::string::npos) break;
      const std::string path = path_part(line.substr(open + 1, close - open - 1));
      if (is_repository_path(path)) paths.push_back(path);
    }
  }
  return paths;
}

// Targets of [text](target) that are no addresses and no anchors.
std::vector<std::string> link_targets(const std::string& markdown) {
  std::vector<std::string> targets;
  std::size_t open = markdown.find("](");
  for (; open != std::string::npos; open = markdown.find("](", open + 2)) {
    const std::size_t end = markdown.find_first_of(")# \n", open + 2);
    const std::string target = markdown.substr(open + 2, end - open - 2);
    if (!target.empty() && target.find(':') == std::string::npos) targets.push_back(target);
  }
  return targets;
}

std::vector<fs::path> documents() {
  std::vector<fs::path> files;
  for (const fs::path& file : files_below({"docs"})) {
    if (has_extension(file, {".md"})) files.push_back(file);
  }
  for (const char* file : {"README.md", "CONTRIBUTING.md", "CHANGELOG.md"}) {
    if (fs::exists(source_dir() / file)) files.emplace_back(file);
  }
  return files;
}

bool exists_for(const fs::path& document, const std::string& path) {
  return fs::exists(source_dir() / path) ||
         fs::exists(source_dir() / document.parent_path() / path);
}

TEST(Documentation, NamesOnlyPathsThatExist) {
  std::vector<std::string> missing;
  for (const fs::path& document : documents()) {
    for (const std::string& path : paths_in_code(read_text(document))) {
      if (!exists_for(document, path)) missing.push_back(document.string() + " names " + path);
    }
  }
  EXPECT_THAT(missing, IsEmpty());
}

TEST(Documentation, LinksOnlyToFilesThatExist) {
  std::vector<std::string> missing;
  for (const fs::path& document : documents()) {
    for (const std::string& target : link_targets(read_text(document))) {
      const bool exists = fs::exists(source_dir() / document.parent_path() / target);
      if (!exists) missing.push_back(document.string() + " links to " + target);
    }
  }
  EXPECT_THAT(missing, IsEmpty());
}

TEST(Documentation, IsThere) { EXPECT_GE(documents().size(), 3u); }

TEST(DocumentPaths, AreFoundInBackticksOutsideOfFences) {
  EXPECT_THAT(
      paths_in_code("see `src/a.cpp:12`, `scripts/test --fast`, `README.md` and `io/store`\n"
                    "```\n`src/fenced.cpp`\n```\n`src/after.cpp`"),
      ElementsAre("src/a.cpp", "scripts/test", "README.md", "io/store", "src/after.cpp"));
}

TEST(DocumentPaths, AreNotOtherPeoplesNamesOrPatterns) {
  EXPECT_THAT(paths_in_code("`config.json` `docs/**/*.md` `src/<module>/x.cpp` `tests/{unit,sim}` "
                            "`build/bin/strata` `a/b`"),
              IsEmpty());
}

TEST(DocumentPaths, AreFoundInLinks) {
  EXPECT_THAT(link_targets("[a](docs/a.md#part) [b](https://example.org/x) [c](#here) ![d](d.svg)"),
              ElementsAre("docs/a.md", "d.svg"));
}

}  // namespace
}  // namespace strata
