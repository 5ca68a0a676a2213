#include "src/measure/fio.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

#include "contract/io/io_testing.hpp"
#include "strata/core/bytes.hpp"

namespace strata {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::Field;
using ::testing::Not;

FioJob job(NvmePattern pattern, const std::string& engine = "io_uring") {
  return {.setup = {engine, 4 * MiB, 8},
          .pattern = pattern,
          .source = "/d/source",
          .target = "/d/target",
          .file_bytes = 64 * MiB};
}

std::string one_job(const std::string& read, const std::string& write,
                    const std::string& rest = "\"error\": 0") {
  return "{ \"jobname\": \"drive0\", \"job_runtime\": 2000, \"usr_cpu\": 1.0, \"sys_cpu\": 3.0, "
         "\"read\": " +
         read + ", \"write\": " + write + ", " + rest + " }";
}
const std::string busy = R"({"io_bytes": 8000000000, "bw_bytes": 4000000000, "runtime": 2000})";
const std::string idle = R"({"io_bytes": 0, "bw_bytes": 0, "runtime": 0})";

TEST(FioArguments, SayTheJobWithoutAShell) {
  const auto arguments = fio_arguments({job(NvmePattern::read)}, 1.5, FioStart::counted);
  EXPECT_EQ(arguments.front(), "fio");
  for (const char* one : {"--direct=1", "--runtime=1500ms", "--time_based", "--rw=read",
                          "--filename=/d/source", "--bs=4194304", "--iodepth=8", "--fixedbufs",
                          "--registerfiles", "--ioengine=io_uring", "--size=67108864"}) {
    EXPECT_THAT(arguments, Contains(one));
  }
}

TEST(FioArguments, NeverWriteOnTheFileThatIsReadFrom) {
  EXPECT_THAT(fio_arguments({job(NvmePattern::write)}, 1, FioStart::counted),
              AllOf(Contains("--rw=write"), Contains("--filename=/d/target"),
                    Not(Contains("--filename=/d/source"))));
  EXPECT_THAT(fio_arguments({job(NvmePattern::mixed)}, 1, FioStart::counted),
              AllOf(Contains("--rw=rw"), Contains("--filename=/d/target"),
                    Not(Contains("--filename=/d/source"))));
}

TEST(FioArguments, RegisterNothingWithOtherEngines) {
  EXPECT_THAT(fio_arguments({job(NvmePattern::read, "libaio")}, 1, FioStart::counted),
              AllOf(Not(Contains("--fixedbufs")), Not(Contains("--registerfiles"))));
}

TEST(FioArguments, EscapeWhatEndsANameForFio) {
  FioJob odd = job(NvmePattern::read);
  odd.source = "/d/a:b";
  EXPECT_THAT(fio_arguments({odd}, 1, FioStart::counted), Contains("--filename=/d/a\\:b"));
}

TEST(FioArguments, LeaveOutTheStartWhenAsked) {
  EXPECT_THAT(fio_arguments({job(NvmePattern::read)}, 1, FioStart::left_out),
              Contains("--ramp_time=200ms"));
  EXPECT_THAT(fio_arguments({job(NvmePattern::read)}, 1, FioStart::counted),
              Not(Contains("--ramp_time=200ms")));
}

TEST(FioReport, GivesRateAndCpuOfAJob) {
  const auto sample = parse_fio("{ \"jobs\": [" + one_job(busy, idle) + "] }");
  ASSERT_TRUE(sample);
  EXPECT_DOUBLE_EQ(sample->bytes_per_s, 4e9);
  EXPECT_DOUBLE_EQ(sample->cpu_seconds_per_gb, 0.04 * 2 / 8);
}

TEST(FioReport, AddsReadsWritesAndJobs) {
  const auto sample =
      parse_fio("{ \"jobs\": [" + one_job(busy, busy) + "," + one_job(busy, idle) + "] }");
  ASSERT_TRUE(sample);
  EXPECT_DOUBLE_EQ(sample->bytes_per_s, 12e9);
  EXPECT_DOUBLE_EQ(sample->cpu_seconds_per_gb, 2 * 0.04 * 2 / 24);
}

TEST(FioReport, MayFollowWarnings) {
  EXPECT_TRUE(parse_fio("fio: this is odd\n{ \"jobs\": [" + one_job(busy, idle) + "] }"));
}

TEST(FioReport, OfAFailureOrOfSomethingElseIsNothing) {
  EXPECT_FALSE(parse_fio(""));
  EXPECT_FALSE(parse_fio("fio: engine libaio not loadable"));
  EXPECT_FALSE(parse_fio("{ \"jobs\": ["));
  EXPECT_FALSE(parse_fio("{ \"jobs\": [ {} ] }"));
  EXPECT_FALSE(parse_fio("{ \"jobs\": [] }"));
  EXPECT_FALSE(parse_fio("{ \"jobs\": [" + one_job(busy, idle, "\"error\": 5") + "] }"));
  EXPECT_FALSE(parse_fio("{ \"jobs\": [" + one_job(idle, idle) + "] }"));
}

TEST(FioSetups, FitTheFile) {
  EXPECT_EQ(fio_setups(1 * GiB).size(), 12u);
  const std::vector<FioSetup> small = fio_setups(4 * MiB);
  EXPECT_EQ(small.size(), 8u);
  EXPECT_THAT(small, Each(Field(&FioSetup::block_bytes, ::testing::Le(4 * MiB))));
}

TEST(FioSetups, HaveAText) {
  EXPECT_EQ((FioSetup{"libaio", 4 * MiB, 32}.text()), "libaio, 4.00 MiB x 32");
}

// The real thing, where it is installed and there is a drive to try it on.
class RealFio : public ::testing::Test {
 protected:
  void SetUp() override {
    if (find_fio() == FioPresence::missing) GTEST_SKIP() << "fio is not installed";
    write_file(directory_.file("source"));
    write_file(directory_.file("target"));
    const int direct = ::open(directory_.file("source").c_str(), O_RDONLY | O_DIRECT);
    if (direct < 0) GTEST_SKIP() << "no O_DIRECT in " << directory_.path();
    ::close(direct);
  }
  static void write_file(const std::string& path) {
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT, 0600);
    const std::vector<char> bytes(4 * MiB, 'x');
    ASSERT_EQ(::write(file, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    ::close(file);
  }
  FioJob small_job(NvmePattern pattern) const {
    return {.setup = {"libaio", 1 * MiB, 2},
            .pattern = pattern,
            .source = directory_.file("source"),
            .target = directory_.file("target"),
            .file_bytes = 4 * MiB};
  }
  testing::TempDirectory directory_;
};

TEST_F(RealFio, UnderstandsWhatWeAskAndWeItsAnswer) {
  for (const NvmePattern pattern : nvme_patterns) {
    const auto sample = run_fio({small_job(pattern)}, 0.1, FioStart::counted, [] {});
    ASSERT_TRUE(sample) << nvme_pattern_name(pattern);
    EXPECT_GT(sample->bytes_per_s, 0);
    EXPECT_GE(sample->cpu_seconds_per_gb, 0);
  }
}

TEST_F(RealFio, RunsOneJobPerDriveAtOnce) {
  EXPECT_TRUE(run_fio({small_job(NvmePattern::read), small_job(NvmePattern::write)}, 0.1,
                      FioStart::counted, [] {}));
}

TEST_F(RealFio, ThatCannotDoAJobGivesNothing) {
  FioJob missing = small_job(NvmePattern::read);
  missing.source = directory_.file("not-there");
  EXPECT_FALSE(run_fio({missing}, 0.1, FioStart::counted, [] {}));
}

}  // namespace
}  // namespace strata
