#pragma once
// The files of this repository, for tests that hold its rules.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "support/source_dir.hpp"

namespace strata {

inline std::string read_text(const std::filesystem::path& file) {
  std::ifstream stream(source_dir() / file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// Paths relative to the repository's root, sorted. Absent folders have no files.
inline std::vector<std::filesystem::path> files_below(const std::vector<std::string>& folders) {
  namespace fs = std::filesystem;
  std::vector<fs::path> files;
  for (const std::string& folder : folders) {
    if (!fs::is_directory(source_dir() / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(source_dir() / folder)) {
      if (entry.is_regular_file()) files.push_back(fs::relative(entry.path(), source_dir()));
    }
  }
  std::ranges::sort(files);
  return files;
}

inline bool has_extension(const std::filesystem::path& file,
                          std::initializer_list<std::string_view> extensions) {
  return std::ranges::find(extensions, file.extension().string()) != extensions.end();
}

}  // namespace strata
