#include "fault/cli/cli_fixture.hpp"

#include <linux/magic.h>
#include <stdlib.h>
#include <sys/statfs.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

namespace strata {
namespace {

namespace fs = std::filesystem;

constexpr const char* config = R"(
cutoff_len: 64
packing: windows
max_steps: 3
learning_rate: 1e-3
eval_strategy: steps
compute_threads: 1
update_threads: 1
offload:
  tile_bytes: 64KiB
  optimizer: {nvme: 1}
  weights: {gpu: 0.5, cpu: 0.5}
)";

std::string quoted(const fs::path& path) {
  std::ostringstream text;
  text << path;
  return text.str();
}

std::string paragraphs() {
  std::string text;
  for (int i = 0; i < 120; ++i)
    text += "Paragraph " + std::to_string(i) + " tells of the sea, the wind and " +
            std::to_string(i * i) + " birds.\n\n";
  return text;
}

}  // namespace

CliTest::CliTest() {
  std::string pattern = ::testing::TempDir() + "strata-cli-XXXXXX";
  folder_ = ::mkdtemp(pattern.data());
  ::setenv("CUDA_VISIBLE_DEVICES", "", 1);  // These are runs on the host, whatever else is there.
}

CliTest::~CliTest() { fs::remove_all(folder_); }

std::string CliTest::text(const std::string& name) const {
  std::ifstream file(path(name), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void CliTest::write(const std::string& name, const std::string& bytes) const {
  std::ofstream(path(name), std::ios::binary) << bytes;
}

std::vector<std::string> CliTest::names_in(const std::string& folder) const {
  std::vector<std::string> names;
  if (!fs::exists(path(folder))) return names;
  for (const auto& entry : fs::directory_iterator(path(folder)))
    if (!entry.path().filename().string().starts_with(".strata-"))
      names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

void CliTest::damage(const std::string& name) const {
  std::string bytes = text(name);
  bytes.at(bytes.size() / 2) ^= 1;
  write(name, bytes);
}

std::vector<std::string> CliTest::command(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), STRATA_BINARY);
  return arguments;
}

ProcessResult CliTest::run(std::vector<std::string> arguments,
                           const ProcessOptions& options) const {
  return Process(folder_, command(std::move(arguments)), options).wait();
}

std::vector<std::string> CliTest::train(const std::vector<std::string>& overrides) const {
  std::vector<std::string> arguments{"train", path("run.yaml")};
  arguments.insert(arguments.end(), overrides.begin(), overrides.end());
  return arguments;
}

ProcessResult CliTest::run_with_mounts(const std::string& script,
                                       const std::vector<std::string>& arguments) const {
  std::vector<std::string> whole{"unshare", "-r", "-m", "sh", "-c", "set -e\n" + script, "sh"};
  whole.insert(whole.end(), arguments.begin(), arguments.end());
  return Process(folder_, whole).wait();
}

bool CliTest::can_mount() const {
  fs::create_directories(path("mount-probe"));
  return run_with_mounts("mount -t tmpfs -o size=16k none \"$1\"", {path("mount-probe")})
             .exit_code == 0;
}

bool CliTest::has_drive() const {
  struct statfs system = {};
  return ::statfs(folder_.c_str(), &system) == 0 && system.f_type != TMPFS_MAGIC &&
         system.f_type != RAMFS_MAGIC;
}

void CliTest::make_inputs() const {
  write("text.txt", paragraphs());
  ASSERT_EQ(run({"make-model", path("model"), "--preset", "tiny"}).exit_code, 0);
  ASSERT_EQ(run({"prepare", "--input", path("text.txt"), "--output", path("data"),
                 "--split-fraction", "0.1"})
                .exit_code,
            0);
  fs::create_directories(path("nvme"));
  write("run.yaml", "model_name_or_path: " + quoted(path("model")) + "\noutput_dir: " +
                        quoted(path("out")) + "\ndataset: " + quoted(path("data/train.tok")) +
                        "\neval_dataset: " + quoted(path("data/heldout.tok")) + config +
                        "  nvme_paths: [" + quoted(path("nvme")) + "]\n");
}

void CliOnDrive::SetUp() {
  make_inputs();
  if (HasFatalFailure()) return;
  if (!has_drive()) GTEST_SKIP() << "temporary files live in memory";
}

LoggedSteps logged_steps(const std::string& metrics) {
  LoggedSteps steps;
  std::istringstream lines(metrics);
  for (std::string line; std::getline(lines, line);) {
    const auto object = nlohmann::json::parse(line, nullptr, false);
    if (!object.is_object() || !object.contains("loss")) continue;
    steps[object["step"]] = object["loss"].dump() + " " + object["grad_norm"].dump() + " " +
                            object["learning_rate"].dump();
  }
  return steps;
}

}  // namespace strata
