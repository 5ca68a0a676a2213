// What README and docs show of `strata plan` for the machines of configs/ is what it says.

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "fault/cli/cli_fixture.hpp"
#include "support/source_dir.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;

// A command and what is shown of its output: "..." stands for lines that are left out.
struct Example {
  std::string command;
  std::vector<std::string> lines;
};

std::vector<Example> examples_in(const fs::path& page) {
  std::ifstream file(page);
  std::vector<Example> examples;
  bool is_inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("$ strata plan --model configs/")) {
      is_inside = true;
      examples.push_back({line.substr(2), {}});
    } else if (line == "```") {
      is_inside = false;
    } else if (is_inside && line.starts_with("    ") && examples.back().lines.empty()) {
      examples.back().command += line;
    } else if (is_inside && line != "...") {
      examples.back().lines.push_back(line);
    }
  }
  return examples;
}

// The first line that does not come behind those before it; empty: all do.
std::string missing_line(const Example& example, const std::string& output) {
  std::istringstream stream(output);
  std::string said;
  for (const std::string& line : example.lines) {
    while (std::getline(stream, said) && said != line) {
    }
    if (!stream) return line;
  }
  return "";
}

class DocumentedPlanSearchFor70B : public CliTest,
                                   public ::testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(Pages, DocumentedPlanSearchFor70B,
                         ::testing::Values("README.md", "docs/design/planning.md"),
                         [](const auto& page) {
                           return page.param == std::string("README.md") ? "Readme" : "Planning";
                         });

TEST_P(DocumentedPlanSearchFor70B, IsWhatIsSaid) {
  const std::vector<Example> examples = examples_in(source_dir() / GetParam());
  ASSERT_FALSE(examples.empty());
  for (const Example& example : examples) {
    ASSERT_GT(example.lines.size(), 5u) << example.command;
    fs::create_directories(path("output"));
    const ProcessResult result =
        Process(
            path("output"),
            {"/bin/sh", "-c", "cd \"$1\" || exit\nstrata() { \"$0\" \"$@\"; }\n" + example.command,
             command({}).front(), source_dir().string()})
            .wait();
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(missing_line(example, result.out), "") << "make it anew: " << example.command << '\n'
                                                     << result.out;
  }
}

}  // namespace
}  // namespace strata
