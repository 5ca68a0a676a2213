// The check over programs of a few lines of shell.

#include "gpu_check/check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "gpu_check/parts.hpp"
#include "gpu_check/training_series.hpp"
#include "support/own_path.hpp"
#include "support/unhurried.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class CheckTest : public ::testing::Test {
 protected:
  CheckTest() : root_(own_path("check_test")) {
    options_.programs = root_ / "bin";
    options_.work = root_ / "work";
    options_.out = root_ / "out";
    for (const fs::path& folder : {options_.programs, options_.work, options_.out})
      fs::create_directories(folder);
  }
  ~CheckTest() override { fs::remove_all(root_); }

  void program(const std::string& name, const std::string& body) {
    const fs::path path = options_.programs / name;
    std::ofstream(path) << "#!/bin/sh\n" << body << "\n";
    fs::permissions(path, fs::perms::owner_all);
  }
  static const CheckRow& row(const Check& check, const std::string& part) {
    for (const CheckRow& row : check.rows())
      if (row.part == part) return row;
    throw std::runtime_error("no row " + part);
  }
  // A strata that knows doctor alone, as of a machine with a GPU.
  std::string doctor(const std::string& json) {
    return "if [ $1 = doctor ]; then printf '%s' '" + json + "' > $5; exit 0; fi\n" +
           "echo \"strata: $2 is unknown\" >&2; exit 2";
  }

  fs::path root_;
  CheckOptions options_;
};

const std::string gpu_findings =
    R"({"findings": [{"topic": "CUDA", "health": "ok",)"
    R"( "facts": "built for 13.0; driver 13.0; device 0: NVIDIA H200 at 0000:01:00.0"}]})";

TEST_F(CheckTest, SeesTheGpuThatDoctorSees) {
  program("strata", doctor(gpu_findings));
  Check check(options_);
  check_machine(check);
  EXPECT_TRUE(check.has_gpu());
  EXPECT_THAT(check.facts.gpu, HasSubstr("NVIDIA H200"));
  EXPECT_EQ(row(check, "machine").outcome, Outcome::pass);
}

TEST_F(CheckTest, GoesOnAfterAPartWhoseJsonIsBroken) {
  program("strata", doctor(gpu_findings.substr(0, 40)));
  program("device_test", "echo '{\"testsuites\": [' > ${1#--gtest_output=json:}");
  program("memory_test", "exit 3");
  options_.extent = Extent::quick;
  Check check(options_);
  check_machine(check);
  check_tests(check);
  EXPECT_EQ(row(check, "machine").outcome, Outcome::fail);
  EXPECT_EQ(row(check, "host: device_test").outcome, Outcome::fail);
  EXPECT_EQ(row(check, "host: memory_test").told, "exit code 3");
  EXPECT_EQ(row(check, "kernel parity").told, "there is no cuda_test beside strata");
  const CheckJson json = CheckJson::parse(read_file(options_.out / "gpu-check.json"));
  EXPECT_EQ(json["failed"], 3);
  EXPECT_EQ(json["parts"].size(), check.rows().size());
}

TEST_F(CheckTest, LosesOneRowToTestsThatCrash) {
  program("cuda_test", R"sh(
case "$3" in *=\*Attention*) kill -SEGV $$ ;; esac
printf '{"testsuites": [{"name": "CudaUpdate", "time": "0.1s", "testsuite": [{"name": "A",'\
' "result": "COMPLETED"}]}]}' > "${1#--gtest_output=json:}")sh");
  options_.extent = Extent::quick;
  Check check(options_);
  check_tests(check);
  EXPECT_EQ(row(check, "attention, products, Llama").outcome, Outcome::fail);
  EXPECT_EQ(row(check, "attention, products, Llama").told, "ended by signal 11");
  for (const char* part : {"GPU = CPU Adam bits", "kernel parity", "device contract"})
    EXPECT_EQ(row(check, part).outcome, Outcome::pass) << row(check, part).told;
}

TEST_F(CheckTest, GoesOnWhenItsTableCannotBeKept) {
  Check check(options_);
  fs::remove_all(options_.out);
  check.run_part({"a part"}, [](Check&) { return none_run({"a part"}, "no reason"); });
  EXPECT_EQ(row(check, "a part").told, "no reason");
}

TEST_F(CheckTest, MeasuresTheRestOfAMachineWhoseDriveCannotBeMeasured) {
  program("strata", R"sh(
case "$*" in *--nvme-path*) echo 'strata: O_DIRECT is refused' >&2; exit 1 ;; esac
echo '{"values": {}}' > "$6")sh");
  Check check(options_);
  check_rates(check);
  EXPECT_EQ(row(check, "machine profile").outcome, Outcome::pass);
  EXPECT_THAT(row(check, "machine profile").told,
              HasSubstr("without a drive: exit code 1: strata: O_DIRECT is refused"));
  EXPECT_EQ(check.facts.profile, (options_.out / "machine.yaml").string());
}

TEST_F(CheckTest, ReportsWhatACommandSaysThatIsUnknown) {
  program("strata", doctor(gpu_findings));
  Check check(options_);
  check_machine(check);
  check_rates(check);
  EXPECT_EQ(row(check, "links").outcome, Outcome::fail);
  EXPECT_EQ(row(check, "links").told, "exit code 2: strata: gpu is unknown");
  EXPECT_EQ(row(check, "machine profile").told, "exit code 2: strata: all is unknown");
}

TEST_F(CheckTest, TrainsNothingWithoutAModel) {
  program("strata", doctor(gpu_findings));
  options_.extent = Extent::quick;
  Check check(options_);
  check_machine(check);
  check_training(check);
  EXPECT_EQ(row(check, "3M made").outcome, Outcome::fail);
  EXPECT_EQ(row(check, "3M (a) all resident").told, "there is no model");
  EXPECT_EQ(row(check, "3M losses").outcome, Outcome::not_run);
}

// Plans of a machine without drives; training leaves a file on the drive.
const std::string driveless_strata = R"sh(
case $1 in
  make-model) mkdir -p "$2" ;;
  plan)
    echo '{}' > "$6"
    ! grep -q 'optimizer: nvme' "$2" || { echo 'strata: machine m has no drives' >&2; exit 2; } ;;
  train)
    drive="$(sed -n 's/^ *nvme_paths: "\(.*\)"$/\1/p' "$2")"
    [ -z "$(ls "$drive")" ] || { echo 'the drive is not empty' >&2; exit 1; }
    echo state > "$drive/state"
    exit 3 ;;
esac
)sh";

TEST_F(CheckTest, RunsNothingOnADriveThatWasNotMeasuredAndEmptiesItAfterEachRun) {
  program("strata", driveless_strata);
  options_.extent = Extent::quick;
  Check check(options_);
  check.facts.profile = "machine.yaml";
  check_training(check);
  EXPECT_EQ(row(check, "3M on the host (c) state on NVMe").outcome, Outcome::not_run);
  EXPECT_THAT(row(check, "3M on the host (c) state on NVMe").told, HasSubstr("has no drives"));
  EXPECT_EQ(row(check, "3M on the host (a) all resident").told, "exit code 3");
  EXPECT_EQ(row(check, "3M on the host (b) state in RAM").told, "exit code 3");
}

// Trains in two lines, on NVMe to a loss that is another in its last bit.
const std::string lossy_strata = R"sh(
case $1 in
  make-model) mkdir -p "$2" ;;
  train)
    out="$(sed -n 's/^output_dir: "\(.*\)"$/\1/p' "$2")"
    mkdir -p "$out"
    loss=4.25
    ! grep -q 'optimizer: nvme' "$2" || loss=4.2500000000000009
    for step in 1 2; do
      echo "{\"step\": $step, \"loss\": $loss, \"grad_norm\": 1, \"step_seconds\": 1," \
        "\"tokens_per_second\": 100}"
    done > "$out/metrics.jsonl"
    printf 'begun\nmemory gpu planned 1 GiB, measured 1 GiB\n' ;;
esac
)sh";

TEST_F(CheckTest, BeginsNoRunThatCannotEndInItsSeriesTime) {
  program("strata", lossy_strata);
  Check check(options_);
  TrainingSeries series(check, tiny_shape());
  series.run({}, {.run_seconds_max = start_seconds});
  EXPECT_THAT(row(check, "3M on the host (a) all resident").told,
              HasSubstr("it may take 2 s, and 3 steps would take 3 s"));
  EXPECT_EQ(row(check, "3M on the host (c) state on NVMe").outcome, Outcome::not_run);
}

TEST_F(CheckTest, LeavesWhatIsReservedToOthers) {
  program("strata", lossy_strata);
  Check check(options_);
  TrainingSeries series(check, tiny_shape());
  series.run({}, {.reserved = options_.budget_seconds - start_seconds});
  EXPECT_EQ(row(check, "3M on the host (a) all resident").outcome, Outcome::not_run);
}

TEST_F(CheckTest, FailsWhenOnePlacementTrainsToOtherBits) {
  program("strata", lossy_strata);
  options_.extent = Extent::quick;
  Check check(options_);
  check_training(check);
  const CheckRow& first = row(check, "3M on the host (a) all resident");
  ASSERT_EQ(first.outcome, Outcome::pass) << check.rows().front().told;
  EXPECT_EQ(first.figures["memory"][0], "memory gpu planned 1 GiB, measured 1 GiB");
  EXPECT_EQ(row(check, "3M on the host (c) state on NVMe").outcome, Outcome::pass);
  EXPECT_EQ(row(check, "3M on the host losses").outcome, Outcome::fail);
  EXPECT_EQ(row(check, "3M on the host losses").told,
            "loss of step 1: 4.25 in (a) all resident, 4.2500000000000009 in (c) state on NVMe");
  EXPECT_EQ(row(check, "3M on the host (d) searched").outcome, Outcome::not_run);
}

TEST_F(CheckTest, EndsAPartAtTheEndOfTheBudgetAndRunsNoOther) {
  program("device_test", "echo begun; exec sleep 300");
  program("memory_test", "exit 0");
  options_.extent = Extent::quick;
  const auto check = unhurried(
      2.5,
      [&](double seconds) {
        options_.budget_seconds = seconds;
        auto made = std::make_unique<Check>(options_);
        check_tests(*made);
        return made;
      },
      [](const auto& late) { return !row(*late, "host: device_test").told.ends_with("begun"); });
  EXPECT_EQ(row(*check, "host: device_test").outcome, Outcome::fail);
  EXPECT_THAT(row(*check, "host: device_test").told,
              ::testing::MatchesRegex("ended after .* s: begun"));
  EXPECT_EQ(row(*check, "host: memory_test").outcome, Outcome::not_run);
  EXPECT_THAT(row(*check, "host: memory_test").told, HasSubstr("used up"));
}

TEST_F(CheckTest, HidesGpusInADryRunAndGivesOurProgramsTheirLibraries) {
  program("strata", "echo \"[$CUDA_VISIBLE_DEVICES] $LD_LIBRARY_PATH\"");
  options_.hides_gpus = true;
  options_.library_path = "/the/libraries";
  Check check(options_);
  EXPECT_TRUE(check.run("strata", {}, 30).succeeded());
  EXPECT_THAT(check.last_output(), ::testing::StartsWith("[] /the/libraries"));
  EXPECT_TRUE(check.run_foreign({"sh", "-c", "echo \"$LD_LIBRARY_PATH\""}, 30).succeeded());
  EXPECT_THAT(check.last_output(), Not(HasSubstr("/the/libraries")));
}

}  // namespace
}  // namespace strata
