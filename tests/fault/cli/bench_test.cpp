// `strata bench`: what it refuses, and a small real measurement of the folder of the binary.

#include <signal.h>
#include <stdlib.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "fault/cli/cli_fixture.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

// A folder on the drive that holds the binary, which is where somebody built: a drive more often
// than the folder of temporary files is.
class CliBench : public CliTest {
 protected:
  CliBench() {
    std::string pattern = fs::path(STRATA_BINARY).parent_path() / "bench-test-XXXXXX";
    drive_ = ::mkdtemp(pattern.data());
  }
  ~CliBench() override { fs::remove_all(drive_); }

  const fs::path& drive() const { return drive_; }
  std::vector<std::string> small(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments{"bench",   "nvme", "--path",  drive_, "--size",   "16MiB",
                                       "--block", "1MiB", "--depth", "4",    "--buffer", "16MiB"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  std::vector<std::string> tiny(std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"--duration", "0.1", "--repeats", "2"});
    return small(more);
  }
  // Not every file system has O_DIRECT; then there is nothing to measure, and bench says so.
  bool is_refused(const ProcessResult& result) const {
    return result.exit_code == exit_usage && (result.err.find("O_DIRECT") != std::string::npos ||
                                              result.err.find("tmpfs") != std::string::npos);
  }
  void expect_usage(const std::vector<std::string>& arguments,
                    const ::testing::Matcher<std::string>& message) const {
    const ProcessResult result = run(arguments);
    EXPECT_EQ(result.exit_code, exit_usage) << result.out << result.err;
    EXPECT_THAT(result.out + result.err, message);
  }
  std::vector<std::string> left_on_drive() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(drive_)) names.push_back(entry.path());
    return names;
  }

 private:
  fs::path drive_;
};

TEST_F(CliBench, DescribesItsOptions) {
  EXPECT_THAT(run({"bench", "--help"}).out, AllOf(HasSubstr("nvme"), HasSubstr("compare")));
  EXPECT_THAT(run({"bench", "nvme", "--help"}).out,
              AllOf(HasSubstr("--sustained"), HasSubstr("--drive-tbw")));
  EXPECT_EQ(run({"bench"}).exit_code, exit_usage);
  EXPECT_EQ(run({"bench", "floppy"}).exit_code, exit_usage);
}

TEST_F(CliBench, RefusesMemoryUnderTheNameOfADrive) {
  struct statfs system = {};
  if (::statfs("/dev/shm", &system) != 0 || ::access("/dev/shm", W_OK) != 0)
    GTEST_SKIP() << "no /dev/shm here";
  expect_usage({"bench", "nvme", "--path", "/dev/shm", "--size", "16MiB"},
               AllOf(HasSubstr("/dev/shm"), HasSubstr("tmpfs")));
}

TEST_F(CliBench, RefusesAFolderThatIsNotThere) {
  expect_usage({"bench", "nvme", "--path", path("absent"), "--size", "16MiB"}, HasSubstr("absent"));
}

TEST_F(CliBench, RefusesOptionsThatMakeNoSense) {
  expect_usage(tiny({"--pattern", "sideways"}),
               AllOf(HasSubstr("sideways"), HasSubstr("read, write or mixed")));
  expect_usage({"bench", "nvme"}, HasSubstr("--path"));
  expect_usage(tiny({"another"}), HasSubstr("a --path of its own"));
  expect_usage({"bench", "nvme", "--path", path(""), "--size", "much"},
               AllOf(HasSubstr("--size"), HasSubstr("much")));
  expect_usage(tiny({"--engine", "steam"}), HasSubstr("steam"));
  expect_usage(tiny({"--drive-tbw", "0"}), HasSubstr("--drive-tbw"));
  expect_usage(small({"--duration", "-1"}), HasSubstr("a positive number of seconds"));
  expect_usage(small({"--repeats", "0"}), HasSubstr("repeats (0)"));
  expect_usage(tiny({"--json", path("absent/report.json")}), HasSubstr("is no folder"));
  EXPECT_THAT(left_on_drive(), IsEmpty());
}

TEST_F(CliBench, RefusesASizeThatDoesNotFit) {
  const ProcessResult result =
      run({"bench", "nvme", "--path", drive(), "--size", "1000000TiB", "--no-sweep"});
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr(drive().string()));
  EXPECT_THAT(left_on_drive(), IsEmpty());
}

TEST_F(CliBench, RefusesToCompareWhatIsNoReport) {
  write("empty.json", "");
  write("other.json", R"({"format": "something else"})");
  write("future.json", R"({"format": "strata-nvme-bench", "schema_version": 99})");
  const auto refused = [&](const std::string& name, const std::string& message) {
    expect_usage({"bench", "compare", path(name), path(name)},
                 AllOf(HasSubstr(name), HasSubstr(message)));
  };
  refused("empty.json", "not valid JSON");
  refused("other.json", "no report");
  refused("future.json", "schema_version 99");
  expect_usage({"bench", "compare", path("absent"), path("absent")}, HasSubstr("absent"));
}

TEST_F(CliBench, MeasuresAndWritesAReportThatCompares) {
  const ProcessResult result = run(
      tiny({"--json", path("report.json"), "--plot", path("report.svg"), "--drive-tbw", "600"}));
  if (is_refused(result)) GTEST_SKIP() << result.err;
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("GB is 1e9 bytes"), HasSubstr("offload:"), HasSubstr("nvme_paths:"),
                    HasSubstr("write, new files"), HasSubstr("GB/s into new files"),
                    HasSubstr("Per 1 billion parameters"), HasSubstr("600 TB written lasts")));
  EXPECT_THAT(result.err, AllOf(HasSubstr("%"), Not(HasSubstr("\033"))));
  const json report = json::parse(text("report.json"));
  EXPECT_EQ(report["results"].size(), 3u);
  EXPECT_EQ(report["results"][0]["bytes_per_s"]["samples"].size(), 2u);
  EXPECT_GT(report["results"][0]["bytes_per_s"]["min"], 0);
  EXPECT_GT(report["results"][1]["new_file_bytes_per_s"]["min"], 0);
  EXPECT_TRUE(report["results"][0]["new_file_bytes_per_s"].is_null());
  EXPECT_GT(report["verified_bytes"], 0);
  EXPECT_THAT(text("report.svg"), StartsWith("<svg "));
  EXPECT_THAT(left_on_drive(), IsEmpty());

  const ProcessResult same = run({"bench", "compare", path("report.json"), path("report.json")});
  EXPECT_EQ(same.exit_code, 0) << same.err;
  EXPECT_THAT(same.out, AllOf(HasSubstr("1.00x"), HasSubstr("within the noise")));

  std::string damaged = text("report.json");
  damaged.replace(damaged.find("\"bytes_per_s\""), 13, "\"bytes_per_z\"");
  write("damaged.json", damaged);
  expect_usage({"bench", "compare", path("report.json"), path("damaged.json")},
               AllOf(HasSubstr("damaged.json"), HasSubstr("bytes_per_s")));
}

TEST_F(CliBench, AnswersForTheRunOfAConfigWithoutItsDrives) {
  make_inputs();
  fs::remove_all(path("nvme"));
  const ProcessResult result =
      run(tiny({"--pattern", "mixed", "--config", path("run.yaml"), "offload.tile_bytes=128KiB"}));
  if (is_refused(result)) GTEST_SKIP() << result.err;
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("One optimizer step of " + path("run.yaml").string()),
                                HasSubstr("s per step"), Not(HasSubstr("1 billion"))));
}

TEST_F(CliBench, SaysWhenAConfigKeepsNothingOnNvme) {
  make_inputs();
  const ProcessResult result =
      run(tiny({"--pattern", "read", "--config", path("run.yaml"), "offload.optimizer={cpu: 1}"}));
  if (is_refused(result)) GTEST_SKIP() << result.err;
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("moves nothing from or to NVMe"));
}

TEST_F(CliBench, RemovesItsFilesWhenItIsStopped) {
  if (is_refused(run(tiny()))) GTEST_SKIP() << "no O_DIRECT here";
  for (const int number : {SIGINT, SIGTERM}) {
    Process process(path(""), command(small({"--duration", "1000"})));
    while (left_on_drive().empty() && process.is_running()) {
    }
    process.kill(number);
    const ProcessResult result = process.wait();
    EXPECT_EQ(result.exit_code, 128 + number) << result.err;
    EXPECT_THAT(result.err, HasSubstr("stopping"));
    EXPECT_THAT(left_on_drive(), IsEmpty());
  }
}

}  // namespace
}  // namespace strata
