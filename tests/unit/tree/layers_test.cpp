// A module includes only lower rows of docs/design/modules.md, never a sibling.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>

#include "source_tree.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;
using ::testing::IsEmpty;

const std::map<std::string, int> rows{
    {"core", 0},      {"program", 1},  {"device", 1},  {"kernels", 2}, {"io", 2},
    {"comm", 2},      {"topology", 2}, {"memory", 3},  {"plan", 3},    {"store", 3},
    {"model", 4},     {"optim", 4},    {"runtime", 4}, {"data", 4},    {"checkpoint", 4},
    {"telemetry", 4}, {"measure", 4},  {"train", 5},   {"cli", 6},     {"main", 7}};

// Stricter than the rows.
const std::map<std::string, std::set<std::string>> forbidden{
    {"model", {"memory", "io", "store", "plan"}},
    {"runtime", {"model", "optim"}},
    {"plan", {"device", "kernels", "io", "comm", "topology"}},
    {"main",
     {"core", "program", "device", "kernels", "io", "comm", "topology", "memory", "plan", "store",
      "model", "optim", "runtime", "data", "checkpoint", "telemetry", "measure", "train"}}};

// The module that owns a path below include/strata, src, io or kernels; empty when it is none of
// those.
std::string module_of(const fs::path& file) {
  std::vector<std::string> parts;
  for (const fs::path& part : file) parts.push_back(part.string());
  if (parts.size() < 2) return "";
  if (file == fs::path("src/main.cpp")) return "main";
  if (parts[0] == "include" && parts.size() > 3)
    parts.erase(parts.begin(), parts.begin() + 2);
  else if (parts[0] == "src" && parts.size() > 2)
    parts.erase(parts.begin());
  else if (parts[0] != "io" && parts[0] != "kernels")
    return "";
  return parts[0] == "io" && parts.size() > 2 && parts[1] == "store" ? "store" : parts[0];
}

std::optional<std::string> objection(const std::string& from, const std::string& to) {
  if (!rows.contains(from)) return "module '" + from + "' is in no row of docs/design/modules.md";
  if (!rows.contains(to)) return "module '" + to + "' is in no row of docs/design/modules.md";
  if (from == to) return std::nullopt;
  if (rows.at(to) > rows.at(from)) return from + " includes " + to + ", a higher row";
  if (rows.at(to) == rows.at(from)) return from + " includes " + to + ", a sibling";
  const auto stricter = forbidden.find(from);
  if (stricter != forbidden.end() && stricter->second.contains(to))
    return from + " must not name " + to;
  return std::nullopt;
}

struct Include {
  fs::path file;
  int line = 0;
  std::string target;
  bool is_quoted = false;
};

// The text between the quotes or brackets of an include line, with its opening mark; or empty.
std::string include_of(const std::string& line) {
  const std::size_t hash = line.find_first_not_of(' ');
  if (hash == std::string::npos || line[hash] != '#') return "";
  const std::size_t word = line.find("include", hash), open = line.find_first_of("<\"", hash);
  if (word == std::string::npos || open == std::string::npos || word > open) return "";
  return line.substr(open, line.find_first_of(">\"", open + 1) - open);
}

std::vector<Include> includes_of(const fs::path& file) {
  std::vector<Include> includes;
  int number = 0;
  for (const std::string& line : lines_of(read_text(file))) {
    ++number;
    const std::string found = include_of(line);
    if (!found.empty()) includes.push_back({file, number, found.substr(1), found[0] == '"'});
  }
  return includes;
}

std::vector<Include> all_includes() {
  std::vector<Include> includes;
  for (const fs::path& file : files_below({"include", "src", "io", "kernels"})) {
    if (!has_extension(file, {".hpp", ".h", ".cpp", ".cu", ".cuh"})) continue;
    for (Include& include : includes_of(file)) includes.push_back(std::move(include));
  }
  return includes;
}

// The included file as a path of this repository, or empty when it is somebody else's.
fs::path resolved(const Include& include) {
  if (include.target.starts_with("strata/")) return fs::path("include") / include.target;
  const fs::path beside = (include.file.parent_path() / include.target).lexically_normal();
  if (include.is_quoted && fs::exists(source_dir() / beside)) return beside;
  const fs::path from_root = fs::path(include.target).lexically_normal();
  return include.is_quoted && fs::exists(source_dir() / from_root) ? from_root : fs::path();
}

std::string place(const Include& include) {
  return include.file.string() + ":" + std::to_string(include.line) + ": ";
}

TEST(Layers, AModuleIncludesOnlyLowerRows) {
  std::vector<std::string> objections;
  for (const Include& include : all_includes()) {
    const fs::path target = resolved(include);
    if (target.empty()) continue;
    if (const auto text = objection(module_of(include.file), module_of(target)))
      objections.push_back(place(include) + *text);
  }
  EXPECT_THAT(objections, IsEmpty());
}

TEST(Layers, AreReadFromRealFiles) { EXPECT_GT(all_includes().size(), 50u); }

TEST(Layers, EveryIncludedHeaderOfOursExists) {
  std::vector<std::string> missing;
  for (const Include& include : all_includes()) {
    if (include.target.starts_with("strata/") && !fs::exists(source_dir() / resolved(include))) {
      missing.push_back(place(include) + include.target);
    }
  }
  EXPECT_THAT(missing, IsEmpty());
}

bool is_accelerator_header(const std::string& target) {
  for (const char* prefix : {"cuda", "cublas", "cudnn", "nccl", "nvtx", "driver_types"}) {
    if (target.starts_with(prefix)) return true;
  }
  return false;
}

TEST(Layers, AcceleratorHeadersAppearOnlyInTheirBackEnds) {
  std::vector<std::string> strays;
  for (const Include& include : all_includes()) {
    const std::string file = include.file.string();
    const bool is_back_end = file.starts_with("src/device/cuda/") ||
                             file.starts_with("src/comm/nccl/") ||
                             file.starts_with("kernels/cuda/");
    if (!is_back_end && is_accelerator_header(include.target))
      strays.push_back(place(include) + include.target);
  }
  EXPECT_THAT(strays, IsEmpty());
}

TEST(Layers, ObjectToSiblingsHigherRowsAndForbiddenNames) {
  EXPECT_TRUE(objection("model", "optim"));
  EXPECT_TRUE(objection("plan", "runtime"));
  EXPECT_TRUE(objection("model", "plan"));
  EXPECT_TRUE(objection("model", "io"));
  EXPECT_TRUE(objection("runtime", "model"));
  EXPECT_TRUE(objection("plan", "device"));
  EXPECT_TRUE(objection("device", "program"));
  EXPECT_TRUE(objection("main", "train"));
  EXPECT_TRUE(objection("core", "utils"));
  EXPECT_FALSE(objection("plan", "program"));
  EXPECT_FALSE(objection("store", "io"));
  EXPECT_FALSE(objection("train", "comm"));
  EXPECT_FALSE(objection("runtime", "store"));
  EXPECT_FALSE(objection("main", "cli"));
}

TEST(Layers, KnowTheModuleOfAFile) {
  EXPECT_EQ(module_of("include/strata/plan/plan.hpp"), "plan");
  EXPECT_EQ(module_of("include/strata/io/store/shard_store.hpp"), "store");
  EXPECT_EQ(module_of("include/strata/io/io_engine.hpp"), "io");
  EXPECT_EQ(module_of("io/store/a.cpp"), "store");
  EXPECT_EQ(module_of("io/uring/a.cpp"), "io");
  EXPECT_EQ(module_of("kernels/cpu/a.cpp"), "kernels");
  EXPECT_EQ(module_of("src/device/host/a.cpp"), "device");
  EXPECT_EQ(module_of("src/main.cpp"), "main");
}

}  // namespace
}  // namespace strata
