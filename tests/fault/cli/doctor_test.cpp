// `strata doctor` of the built binary.

#include <nlohmann/json.hpp>

#include "fault/cli/cli_fixture.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// The finding of this topic; null when there is none.
nlohmann::json finding_of(const nlohmann::json& report, const std::string& topic) {
  for (const auto& finding : report["findings"]) {
    if (finding["topic"] == topic) return finding;
  }
  return {};
}

TEST_F(CliTest, DoctorExplainsItselfAndItsOptions) {
  EXPECT_THAT(run({"--help"}).out, HasSubstr("doctor"));
  const ProcessResult help = run({"doctor", "--help"});
  EXPECT_EQ(help.exit_code, 0);
  for (const char* option : {"--path", "--config", "--json"})
    EXPECT_THAT(help.out, HasSubstr(option));
}

TEST_F(CliTest, DoctorLooksAtTheMachineAndSaysThatNoDriveWasNamed) {
  const ProcessResult result = run({"doctor"});
  EXPECT_EQ(result.err, "");
  for (const char* topic : {"kernel", "io_uring", "memlock", "huge pages", "open files", "memory",
                            "cores", "threads", "NUMA", "GPUs"})
    EXPECT_THAT(result.out, HasSubstr(std::string("  ") + topic + "  "));
  EXPECT_THAT(result.out, HasSubstr("No drive was looked at"));
  EXPECT_THAT(result.out, Not(HasSubstr("\x1b"))) << "no terminal, no colour";
  EXPECT_EQ(result.exit_code, result.out.find("\nbroken") == std::string::npos ? 0 : 1);
}

TEST_F(CliTest, DoctorWritesItsFindingsAsJsonToo) {
  fs::create_directories(path("drive"));
  const ProcessResult result =
      run({"doctor", "--path", path("drive"), "--json", path("doctor.json")});
  const auto report = nlohmann::json::parse(text("doctor.json"));
  EXPECT_EQ(report["schema_version"], 1);
  EXPECT_EQ(result.exit_code, report["health"] == "broken" ? 1 : 0);
  const auto drive = finding_of(report, "drive " + path("drive").string());
  ASSERT_FALSE(drive.is_null());
  EXPECT_EQ(drive["health"] == "broken", !has_drive()) << drive;
  EXPECT_THAT(names_in("drive"), IsEmpty()) << "a doctor leaves nothing behind";
}

TEST_F(CliTest, DoctorFailsForADriveThatIsNotThereAndSaysHowToMendIt) {
  const ProcessResult result = run({"doctor", "--path", path("missing")});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("broken"));
  EXPECT_THAT(result.out, HasSubstr("-> create the directory"));
}

TEST_F(CliTest, DoctorCallsMemoryNoDrive) {
  if (!fs::is_directory("/dev/shm")) GTEST_SKIP() << "no /dev/shm";
  const ProcessResult result = run({"doctor", "--path", "/dev/shm"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("keeps files in RAM"));
}

TEST_F(CliTest, DoctorTakesDrivesAndOutputFromAConfig) {
  fs::create_directories(path("drive"));
  write("run.yaml", "output_dir: " + path("out/new").string() + "\noffload:\n  nvme_paths: [" +
                        path("drive").string() + ", " + path("gone").string() + "]\n");
  const ProcessResult result =
      run({"doctor", "--config", path("run.yaml"), "--json", path("doctor.json")});
  EXPECT_EQ(result.exit_code, 1) << result.out;
  const auto report = nlohmann::json::parse(text("doctor.json"));
  EXPECT_FALSE(finding_of(report, "drive " + path("drive").string()).is_null());
  EXPECT_EQ(finding_of(report, "drive " + path("gone").string())["health"], "broken");
  EXPECT_FALSE(finding_of(report, "output " + path("out/new").string()).is_null());
  EXPECT_FALSE(fs::exists(path("out"))) << "looking makes nothing";
}

TEST_F(CliTest, DoctorRefusesAConfigItCannotRead) {
  EXPECT_EQ(run({"doctor", "--config", path("none.yaml")}).exit_code, 2);
  write("odd.yaml", "no_such_key: 1\n");
  const ProcessResult result = run({"doctor", "--config", path("odd.yaml")});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("no_such_key"));
}

}  // namespace
}  // namespace strata
