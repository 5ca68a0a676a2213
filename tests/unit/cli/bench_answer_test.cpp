#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/cli/command_bench_answer.hpp"
#include "strata/io/io_engine.hpp"

namespace strata {
namespace {

using ::testing::AllOf;
using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Optional;

struct Rate {
  NvmePattern pattern;
  std::string target;
  double gb_per_s;
};

NvmeReport report_of(const std::vector<std::string>& paths, const std::vector<Rate>& rates) {
  NvmeReport report;
  for (const std::string& path : paths) {
    DriveFacts drive;
    drive.path = path;
    report.drives.push_back(drive);
  }
  for (const Rate& rate : rates) {
    NvmeResult result;
    result.pattern = rate.pattern;
    result.target = rate.target;
    result.bytes_per_s.values = {rate.gb_per_s * 1e9};
    report.results.push_back(result);
  }
  report.best_block_bytes = IoOptions{}.chunk_bytes;
  report.best_depth = 16;
  return report;
}

constexpr auto read = NvmePattern::read;
constexpr auto write = NvmePattern::write;
constexpr auto mixed = NvmePattern::mixed;

NvmeReport one_drive() {
  return report_of({"/a"}, {{read, "/a", 4}, {write, "/a", 2}, {mixed, "/a", 3}});
}
NvmeReport two_drives() {
  return report_of({"/a", "/b"}, {{mixed, "/a", 3}, {mixed, "/b", 1.5}, {mixed, "all", 4}});
}

SustainedResult knee_at(NvmePattern pattern, double after_gb_per_s) {
  SustainedResult sustained;
  sustained.pattern = pattern;
  sustained.target = "/a";
  sustained.knee = 1;
  sustained.bytes_per_s = {2e9, 1e9};
  sustained.after_knee_bytes_per_s = after_gb_per_s * 1e9;
  return sustained;
}

TEST(NvmeSeconds, AreBytesBothWaysOverTheMixedRate) {
  EXPECT_THAT(nvme_seconds(one_drive(), {{6'000'000'000}, {6'000'000'000}}), Optional(DoubleEq(4)));
}

TEST(NvmeSeconds, AddTheExcessOfOneDirectionAtItsOwnRate) {
  EXPECT_THAT(nvme_seconds(one_drive(), {{7'000'000'000}, {3'000'000'000}}),
              Optional(DoubleEq(2 + 1)));
  EXPECT_THAT(nvme_seconds(one_drive(), {{3'000'000'000}, {7'000'000'000}}),
              Optional(DoubleEq(2 + 2)));
}

TEST(NvmeSeconds, TakeReadsAndWritesInTurnWhereMixedWasNotMeasured) {
  const NvmeReport report = report_of({"/a"}, {{read, "/a", 4}, {write, "/a", 2}});
  EXPECT_THAT(nvme_seconds(report, {{4'000'000'000}, {4'000'000'000}}), Optional(DoubleEq(1 + 2)));
}

TEST(NvmeSeconds, AreUnknownWithoutTheRatesTheyNeed) {
  const NvmeReport only_read = report_of({"/a"}, {{read, "/a", 4}});
  EXPECT_EQ(nvme_seconds(only_read, {{1}, {1}}), std::nullopt);
  EXPECT_THAT(nvme_seconds(only_read, {{4'000'000'000}, {0}}), Optional(DoubleEq(1)));
  EXPECT_EQ(nvme_seconds(report_of({"/a"}, {{mixed, "/a", 3}}), {{2}, {1}}), std::nullopt);
}

TEST(NvmeSeconds, AreThoseOfTheBusiestDrive) {
  EXPECT_THAT(nvme_seconds(two_drives(), {{0, 3'000'000'000}, {0, 3'000'000'000}}),
              Optional(DoubleEq(4)));
}

TEST(NvmeSeconds, AreBoundByWhatDrivesReachTogether) {
  EXPECT_THAT(
      nvme_seconds(two_drives(), {{4'000'000'000, 2'000'000'000}, {4'000'000'000, 2'000'000'000}}),
      Optional(DoubleEq(3)));
}

TEST(NvmeSecondsAfterKnee, AreBoundByTheWritesThatTheDriveKeepsUp) {
  NvmeReport report = one_drive();
  const NvmeTraffic traffic{{6'000'000'000}, {6'000'000'000}};
  EXPECT_EQ(nvme_seconds_after_knee(report, traffic), std::nullopt);
  report.sustained = {knee_at(write, 0.5)};
  EXPECT_THAT(nvme_seconds_after_knee(report, traffic), Optional(DoubleEq(12)));
  report.sustained = {knee_at(mixed, 1)};
  EXPECT_THAT(nvme_seconds_after_knee(report, traffic), Optional(DoubleEq(12)));
}

TEST(NvmeWeights, AreRelativeMixedBandwidth) {
  EXPECT_THAT(nvme_weights(two_drives()), ElementsAre(1, 0.5));
  EXPECT_THAT(nvme_weights(one_drive()), IsEmpty());
}

TEST(NvmeWeights, AreTakenFromReadsAndWritesWhereMixedWasNotMeasured) {
  EXPECT_THAT(nvme_weights(report_of({"/a", "/b"}, {{read, "/a", 1}, {read, "/b", 4}})),
              ElementsAre(0.25, 1));
  EXPECT_THAT(nvme_weights(report_of({"/a", "/b"}, {})), ElementsAre(1, 1));
}

TEST(RunQueueDepth, IsTheFewestPiecesThatAreAsFastAsTheBest) {
  NvmeReport report = one_drive();
  const auto add = [&](std::uint64_t block, int depth, double gb_per_s) {
    NvmeResult point;
    point.pattern = mixed;
    point.target = "/a";
    point.block_bytes = block;
    point.depth = depth;
    point.bytes_per_s.values = {gb_per_s * 1e9};
    report.sweep.push_back(point);
  };
  const std::uint64_t piece = IoOptions{}.chunk_bytes;
  add(piece, 32, 3.0);
  add(piece, 8, 2.98);
  add(piece, 1, 1.0);
  add(piece / 4, 4, 9.0);  // of another block: not what a run does
  EXPECT_EQ(run_queue_depth(report), 8);
}

TEST(RunQueueDepth, KeepsAsManyBytesInFlightAsAnotherBlockSizeDid) {
  NvmeReport report = one_drive();
  EXPECT_EQ(run_queue_depth(report), 16);
  report.best_block_bytes *= 4;
  EXPECT_EQ(run_queue_depth(report), 64);
  report.best_block_bytes = 4096;
  EXPECT_EQ(run_queue_depth(report), 1);
}

TEST(DemandOfABillion, IsTwelveBytesPerParameterEachWay) {
  const NvmeDemand demand = demand_of_a_billion(two_drives());
  EXPECT_EQ(demand.traffic.read_bytes(), 12'000'000'000u);
  EXPECT_EQ(demand.traffic.written_bytes(), 12'000'000'000u);
  EXPECT_THAT(demand.traffic.drive_written_bytes, ElementsAre(8'000'000'000u, 4'000'000'000u));
  EXPECT_EQ(demand_of_a_billion(one_drive()).traffic.drive_read_bytes.size(), 1u);
}

TEST(Answer, HasTheSettingsToPaste) {
  const std::string text =
      format_answer(two_drives(), demand_of_a_billion(two_drives()), {"uring", {}});
  EXPECT_THAT(text, HasSubstr("offload:\n  nvme_paths: [/a, /b]\n  nvme_weights: [1, 0.5]"));
  EXPECT_THAT(text, HasSubstr("  io_engine: uring\n  io_queue_depth: 16\n"));
  EXPECT_THAT(format_answer(one_drive(), demand_of_a_billion(one_drive()), {}),
              Not(HasSubstr("nvme_weights")));
}

TEST(Answer, TellsRatesSecondsAndLifePerBillionParameters) {
  EXPECT_THAT(format_answer(one_drive(), demand_of_a_billion(one_drive()), {}),
              AllOf(HasSubstr("read 4.00, write 2.00, mixed 3.00 GB/s"),
                    HasSubstr("Per 1 billion parameters"), HasSubstr("8.00 s per step"),
                    HasSubstr("assumed rating"), HasSubstr("50,000"), HasSubstr("100,000"),
                    HasSubstr("1,166,666")));
}

TEST(Answer, TellsTheRateOfNewFilesWhereItWasMeasured) {
  NvmeReport report = one_drive();
  const NvmeDemand demand = demand_of_a_billion(report);
  EXPECT_THAT(format_answer(report, demand, {}), Not(HasSubstr("new files")));
  report.results[1].new_file_bytes_per_s = Samples{{1.2e9, 1.1e9, 1.3e9}};
  EXPECT_THAT(format_answer(report, demand, {}), HasSubstr("1.20 GB/s into new files"));
}

TEST(Answer, UsesTheRatingThatIsGiven) {
  const std::string text =
      format_answer(one_drive(), {"One step of run.yaml", {{0}, {2'000'000'000}}}, {"auto", 300});
  EXPECT_THAT(text, AllOf(HasSubstr("300 TB written lasts 150,000 steps"),
                          HasSubstr("One step of run.yaml reads 0 GB"), Not(HasSubstr("assumed"))));
}

TEST(Answer, CountsTheWearOfPathsOnOneDiskTogether) {
  NvmeReport report = two_drives();
  const NvmeDemand demand{"A step", {{1, 1}, {2'000'000'000, 1'000'000'000}}};
  EXPECT_THAT(format_answer(report, demand, {"auto", 300}),
              AllOf(HasSubstr("lasts 150,000 steps"), Not(HasSubstr("on one disk"))));
  report.drives[0].disk = report.drives[1].disk = "nvme0n1";
  EXPECT_THAT(format_answer(report, demand, {"auto", 300}),
              AllOf(HasSubstr("lasts 100,000 steps"), HasSubstr("/a and /b are on one disk")));
}

TEST(Answer, SaysWhenARunMovesNothing) {
  EXPECT_THAT(format_answer(one_drive(), {"One step of run.yaml", {}}, {}),
              AllOf(HasSubstr("One step of run.yaml moves nothing"), Not(HasSubstr("rating"))));
}

}  // namespace
}  // namespace strata
