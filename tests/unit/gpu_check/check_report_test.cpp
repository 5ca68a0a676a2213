#include "gpu_check/check_report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace strata {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

CheckHead head() { return {"abc123", "2026-01-02T03:04:05Z", "device 0: a GPU", 61.7, 300}; }

std::vector<CheckRow> rows() {
  return {passed("links", "H2D 50.0 GB/s", {{"h2d_bytes_per_s", 5e10}}),
          failed("kernel parity", "ended after 30 s", "the last thing that it said"),
          not_run("PyTorch", "no PyTorch with CUDA")};
}

TEST(CheckReport, TellsInTheTableWhatPassedWhatFailedAndWhatWasNotRun) {
  const std::string table = format_table(head(), rows());
  EXPECT_THAT(table, ::testing::ContainsRegex("links +pass +0.0  H2D 50.0 GB/s\n"));
  EXPECT_THAT(table, ::testing::ContainsRegex("kernel parity +FAIL +0.0  ended after 30 s\n"));
  EXPECT_THAT(table, ::testing::ContainsRegex("PyTorch +not run +-  no PyTorch with CUDA\n"));
  EXPECT_THAT(table, HasSubstr("1 passed, 1 failed, 1 not run in 62 s"));
}

TEST(CheckReport, BreaksLongLinesAndKeepsTheirWords) {
  std::string told;
  for (int i = 0; i < 60; ++i) told += "word" + std::to_string(i) + " ";
  const std::string table = format_table(head(), {passed("links", told, CheckJson::object())});
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 120u) << line;
  for (int i = 0; i < 60; ++i) EXPECT_THAT(table, HasSubstr("word" + std::to_string(i)));
}

TEST(CheckReport, HasEveryFactInTheJson) {
  const CheckJson json = CheckJson::parse(format_json(head(), rows()));
  EXPECT_EQ(json["commit"], "abc123");
  EXPECT_EQ(json["gpu"], "device 0: a GPU");
  EXPECT_EQ(json["passed"], 1);
  EXPECT_EQ(json["failed"], 1);
  EXPECT_EQ(json["not_run"], 1);
  EXPECT_EQ(json["parts"][0]["figures"]["h2d_bytes_per_s"], 5e10);
  EXPECT_EQ(json["parts"][1]["result"], "fail");
  EXPECT_EQ(json["parts"][1]["output_tail"], "the last thing that it said");
  EXPECT_EQ(json["parts"][2]["result"], "not run");
  EXPECT_FALSE(json["parts"][2].contains("output_tail"));
}

TEST(CheckReport, IsValidJsonWhateverAProgramPrinted) {
  const std::string text = format_json(
      head(), {failed("links", "ended by signal 11", "\xff\xfe half a character \xc3"),
               passed("attention", "", {{"share", std::numeric_limits<double>::quiet_NaN()}})});
  const CheckJson json = CheckJson::parse(text);
  EXPECT_THAT(json["parts"][0]["output_tail"].get<std::string>(), HasSubstr("half a character"));
  EXPECT_TRUE(json["parts"][1]["figures"]["share"].is_null());
}

}  // namespace
}  // namespace strata
