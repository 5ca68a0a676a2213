#include "strata/measure/pass_report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "strata/core/error.hpp"

namespace strata {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

PassResult pass_of(const std::string& name, double seconds) {
  PassResult result;
  result.pass = name;
  result.threads = 2;
  result.count = 1'000'000;
  result.bytes_per_element = 24;
  result.allocate_bytes_per_element = 8;
  result.seconds.values = {seconds, 2 * seconds, 4 * seconds};
  result.roofline_seconds.values = {0.5 * seconds, 2 * seconds, 2 * seconds};
  result.ping_ns.values = {60, 62};
  return result;
}

PassReport report_of(PassBench bench, std::vector<PassResult> results) {
  PassReport report;
  report.bench = bench;
  report.strata_version = "0.1.0";
  report.started_at = "2026-11-29T20:15:01Z";
  report.kernel = "6.1.0";
  report.cpu = "Processor of a test";
  report.usable_cores = 2;
  report.ping_cores = "0 and 1";
  report.load_before = 0.25;
  report.load_after = 1.5;
  report.page_bytes = 2 << 20;
  report.repeats = 3;
  report.results = std::move(results);
  report.notes = {"a note"};
  return report;
}

json adam_json() {
  return json::parse(to_json(report_of(PassBench::adam, {pass_of("adamw bf16/split/q8", 1e-3)})));
}
void expect_refused(const json& document, const ::testing::Matcher<std::string>& message) {
  try {
    pass_report_from_json(document.dump(), "a.json");
    FAIL() << "accepted: " << document.dump();
  } catch (const ConfigError& error) {
    EXPECT_THAT(std::string(error.what()), AllOf(HasSubstr("a.json"), message));
  }
}

TEST(PassResult, CountsElementsAndBytesPerSecond) {
  const PassResult result = pass_of("triad", 1e-3);
  EXPECT_THAT(result.elements_per_s().values, ElementsAre(1e9, 0.5e9, 0.25e9));
  EXPECT_THAT(result.bytes_per_s().values, ElementsAre(24e9, 12e9, 6e9));
}

TEST(PassResult, ComparesEachSampleWithTheRooflineRightBeforeIt) {
  EXPECT_THAT(pass_of("adamw", 1e-3).of_roofline().values,
              ElementsAre(DoubleEq(0.5), DoubleEq(1), DoubleEq(0.5)));
  PassResult lone = pass_of("triad", 1e-3);
  lone.roofline_seconds.values.clear();
  EXPECT_THAT(lone.of_roofline().values, IsEmpty());
}

TEST(PassReport, ComesBackFromJsonAsItWas) {
  for (const PassBench bench : {PassBench::memory, PassBench::adam}) {
    const PassReport report = report_of(bench, {pass_of("triad", 1e-3), pass_of("copy", 2e-3)});
    const PassReport back = pass_report_from_json(to_json(report), "a.json");
    EXPECT_EQ(back.bench, bench);
    EXPECT_EQ(back.results[1].ping_ns.values, report.results[1].ping_ns.values);
    EXPECT_EQ(to_json(back), to_json(report));
  }
}

TEST(PassReport, WritesWhatFollowsFromTheSamplesToo) {
  const json result = adam_json()["results"][0];
  EXPECT_EQ(result["bytes_per_s"]["median"], 12e9);
  EXPECT_EQ(result["elements_per_s"]["max"], 1e9);
  EXPECT_EQ(result["of_roofline"]["min"], 0.5);
}

TEST(PassReport, RefusesWhatIsNoReportOfAKnownVersion) {
  json document = adam_json();
  document["schema_version"] = 2;
  expect_refused(document, HasSubstr("schema_version 2"));
  document["format"] = "strata-nvme-bench";
  expect_refused(document, HasSubstr("no report of strata bench adam"));
  expect_refused(json::array(), HasSubstr("no report"));
  EXPECT_THROW(pass_report_from_json("{", "a.json"), ConfigError);
}

TEST(PassReport, RefusesMissingUnknownAndImpossibleFields) {
  json document = adam_json();
  document["results"][0].erase("seconds");
  expect_refused(document, HasSubstr("'seconds' is missing"));
  document = adam_json();
  document["results"][0]["surprise"] = 1;
  expect_refused(document, HasSubstr("unknown key 'surprise'"));
  document = adam_json();
  document["results"][0]["num_threads"] = -1;
  expect_refused(document, HasSubstr("num_threads"));
  document = adam_json();
  document["results"][0]["roofline_seconds"]["samples"] = {1e-3};
  expect_refused(document, HasSubstr("another number"));
}

TEST(PassReport, WritesNoNumberThatJsonLacks) {
  PassReport report = report_of(PassBench::memory, {pass_of("triad", 1e-3)});
  report.load_before = std::numeric_limits<double>::infinity();
  EXPECT_THROW(to_json(report), Error);
}

TEST(PassReport, KnowsItsOwnJson) {
  EXPECT_TRUE(is_pass_report(adam_json().dump()));
  EXPECT_FALSE(is_pass_report(R"({"format": "strata-nvme-bench"})"));
  EXPECT_FALSE(is_pass_report("[]"));
  EXPECT_FALSE(is_pass_report("no json"));
}

TEST(PassReport, ShowsFetchedLinesOfMemoryAndTheRooflineOfUpdates) {
  const std::string memory =
      format_pass_report(report_of(PassBench::memory, {pass_of("triad", 1e-3)}));
  EXPECT_THAT(memory, AllOf(HasSubstr("12.0 (6.00-24.0)"), HasSubstr("16.0"), HasSubstr("60, 62"),
                            HasSubstr("note: a note")));
  const std::string adam =
      format_pass_report(report_of(PassBench::adam, {pass_of("adamw f32/f32/f32", 1e-3)}));
  EXPECT_THAT(adam, AllOf(HasSubstr("of roofline"), HasSubstr("0.500 (0.500-1.00)")));
}

TEST(PassReport, CallsADifferenceWithinTheRangesNoise) {
  const PassReport a = report_of(PassBench::adam, {pass_of("x", 1e-3), pass_of("y", 1e-3)});
  const PassReport b = report_of(PassBench::adam, {pass_of("x", 1.1e-3), pass_of("y", 0.1e-3)});
  const std::string text = compare_pass_reports(a, b);
  EXPECT_THAT(text, AllOf(HasSubstr("within the noise"), HasSubstr("10.00x"),
                          HasSubstr("B is faster"), Not(HasSubstr("B is slower"))));
}

TEST(PassReport, ComparesOnlyTheSamePassOfAsManyThreadsAndElements) {
  const PassReport a = report_of(PassBench::adam, {pass_of("x", 1e-3)});
  PassReport b = a;
  b.results[0].threads = 1;
  b.cpu = "Another";
  EXPECT_THAT(compare_pass_reports(a, b), AllOf(HasSubstr("only in A"), HasSubstr("only in B"),
                                                HasSubstr("A Processor of a test")));
}

TEST(PassReport, IsNotComparedWithOneOfAnotherKind) {
  EXPECT_THROW(
      compare_pass_reports(report_of(PassBench::adam, {}), report_of(PassBench::memory, {})),
      ConfigError);
}

}  // namespace
}  // namespace strata
