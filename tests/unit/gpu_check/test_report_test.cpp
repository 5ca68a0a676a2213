#include "gpu_check/test_report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace strata {
namespace {

using ::testing::HasSubstr;

CheckJson test(const char* name, const char* result) {
  return {{"name", name}, {"status", "RUN"}, {"result", result}};
}

CheckJson broken_test(const char* name) {
  CheckJson json = test(name, "COMPLETED");
  json["failures"] = {{{"failure", "a_test.cpp:7\nExpected equality"}, {"type", ""}}};
  return json;
}

CheckJson suite(const char* name, std::vector<CheckJson> tests) {
  return {{"name", name}, {"time", "0.25s"}, {"testsuite", tests}};
}

std::string report(std::vector<CheckJson> suites) {
  return CheckJson{{"testsuites", suites}}.dump();
}

const std::vector<TestGroup> groups{{"Adam bits", {"Update"}}, {"the rest", {}}};
const std::string skip_output =
    "[ RUN      ] CudaUpdate.A\nx_test.cpp:5: Skipped\nno device: the driver is missing\n\n";

TEST(TestReport, HasAFilterForEachGroupAndAllElseInTheLast) {
  const std::vector<TestGroup> all{{"bits", {"Update", "Adam"}}, {"runs", {"Run"}}, {"rest", {}}};
  EXPECT_EQ(gtest_filter(all[0], all), "*Update*.*:*Adam*.*");
  EXPECT_EQ(gtest_filter(all[2], all), "*-*Update*.*:*Adam*.*:*Run*.*");
  EXPECT_EQ(gtest_filter(all[2], {all[2]}), "*");
}

TEST(TestReport, MakesARowOfEachGroupOfSuites) {
  const auto rows =
      test_rows(report({suite("CudaUpdate", {test("A", "COMPLETED"), test("B", "COMPLETED")}),
                        suite("CudaRows", {test("A", "COMPLETED"), test("B", "SKIPPED"),
                                           test("DISABLED_C", "SUPPRESSED")})}),
                "", groups);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].part, "Adam bits");
  EXPECT_EQ(rows[0].outcome, Outcome::pass);
  EXPECT_EQ(rows[0].told, "2 passed");
  EXPECT_EQ(rows[0].seconds, 0.25);
  EXPECT_EQ(rows[1].told, "1 passed, 1 skipped");
  EXPECT_EQ(rows[1].figures["suites"]["CudaRows"]["passed"], 1);
}

TEST(TestReport, FailsWhereOneTestFailed) {
  const auto rows = test_rows(
      report({suite("CudaUpdate", {test("A", "COMPLETED"), broken_test("B")})}), "", groups);
  EXPECT_EQ(rows[0].outcome, Outcome::fail);
  EXPECT_EQ(rows[0].told, "1 of 2 failed, the first is CudaUpdate.B");
  EXPECT_THAT(rows[0].output_tail, HasSubstr("Expected equality"));
}

// No row may say "pass" when nothing was looked at.
TEST(TestReport, HasNotRunWhatWasSkippedThroughout) {
  const auto rows =
      test_rows(report({suite("CudaUpdate", {test("A", "SKIPPED"), test("B", "SKIPPED")})}),
                skip_output, groups);
  EXPECT_EQ(rows[0].outcome, Outcome::not_run);
  EXPECT_EQ(rows[0].told, "2 skipped: no device: the driver is missing");
  EXPECT_EQ(rows[1].outcome, Outcome::not_run);
  EXPECT_EQ(rows[1].told, "the program has no such tests");
}

TEST(TestReport, RefusesWhatIsNoReport) {
  EXPECT_THROW(test_rows("{\"testsuites\": [", "", groups), CheckJson::exception);
  EXPECT_THROW(test_rows("{}", "", groups), CheckJson::exception);
}

}  // namespace
}  // namespace strata
