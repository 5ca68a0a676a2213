#include "strata/measure/nvme_report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "strata/core/error.hpp"
#include "strata/core/philox.hpp"

namespace strata {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

NvmeResult result_of(NvmePattern pattern, const std::string& target, double gb_per_s) {
  NvmeResult result;
  result.pattern = pattern;
  result.target = target;
  result.block_bytes = 4 << 20;
  result.depth = 32;
  result.bytes_per_s.values = {gb_per_s * 1e9, gb_per_s * 0.98e9, gb_per_s * 1.02e9};
  result.cpu_seconds_per_gb.values = {0.02, 0.021, 0.019};
  result.latency = {1500, 2500, 40000};
  return result;
}

DriveFacts drive_at(const std::string& path) {
  DriveFacts drive;
  drive.path = path;
  drive.mount_point = "/mnt";
  drive.file_system = "xfs";
  drive.mount_options = "rw,noatime";
  drive.total_bytes = 2'000'000'000'000;
  drive.free_bytes = 1'000'000'000'000;
  drive.device = "/dev/nvme0n1p1";
  drive.disk = "nvme0n1";
  drive.model = "Drive of a test";
  drive.rotational = false;
  drive.logical_sector_bytes = 512;
  drive.physical_sector_bytes = 4096;
  drive.requests_max = 1023;
  drive.request_bytes_max = 131072;
  drive.scheduler = "none";
  drive.write_cache = "write back";
  drive.numa_node = 1;
  drive.pcie_link = "16.0 GT/s PCIe x4";
  drive.direct_alignment = 512;
  return drive;
}

NvmeReport small_report() {
  NvmeReport report;
  report.strata_version = "0.1.0";
  report.started_at = "2026-01-02T03:04:05Z";
  report.kernel = "6.1.0";
  report.cpu = "a processor";
  report.engine = "io_uring: depth 32";
  report.buffer_page_bytes = 2 << 20;
  report.file_bytes = 4ull << 30;
  report.repeats = 3;
  report.drives = {drive_at("/mnt/a")};
  report.results = {result_of(NvmePattern::read, "/mnt/a", 3.5),
                    result_of(NvmePattern::write, "/mnt/a", 1.8),
                    result_of(NvmePattern::mixed, "/mnt/a", 2.4)};
  report.verified_bytes = 8ull << 30;
  report.best_block_bytes = 4 << 20;
  report.best_depth = 32;
  return report;
}

NvmeReport full_report() {
  NvmeReport report = small_report();
  report.drives.push_back({});  // of which nothing is known
  report.results[0].fio_bytes_per_s = Samples{{3.4e9, 3.5e9, 3.3e9}};
  report.results[0].fio_cpu_seconds_per_gb = Samples{{0.02, 0.03, 0.025}};
  report.results[0].fio_job = "libaio, 1 MiB x 16";
  report.results[1].new_file_bytes_per_s = Samples{{1.2e9, 1.1e9, 1.3e9}};
  report.results.push_back(result_of(NvmePattern::read, "all", 7));
  for (const std::uint64_t block : {1u << 20, 4u << 20})
    for (const int depth : {4, 32}) {
      NvmeResult point = result_of(NvmePattern::read, "/mnt/a", block == 1u << 20 ? 2 : 3.456);
      point.block_bytes = block;
      point.depth = depth;
      report.sweep.push_back(point);
    }
  report.sweep.pop_back();
  report.sustained = {{NvmePattern::write, "/mnt/a", 0.5, {3e9, 3e9, 1e9, 1e9}, 2, 3e9, 1e9},
                      {NvmePattern::mixed, "/mnt/a", 1, {2e9, 2.2e9, 2.1e9}, {}, 2.1e9, 0}};
  report.sync_seconds.values = {0.1, 0.2, 0.3};
  report.notes = {"a thing to know"};
  return report;
}

std::string refusal(const std::string& text) {
  try {
    nvme_report_from_json(text, "report.json");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

std::string refusal_of(const std::function<void(json&)>& change) {
  json document = json::parse(to_json(full_report()));
  change(document);
  return refusal(document.dump());
}

// --- JSON

TEST(NvmeReportJson, ReadsBackWhatItWrote) {
  for (const NvmeReport& report : {full_report(), small_report(), NvmeReport{}}) {
    const std::string text = to_json(report);
    EXPECT_EQ(to_json(nvme_report_from_json(text, "report.json")), text);
  }
}

TEST(NvmeReportJson, KeepsEverySampleAndFact) {
  const NvmeReport read = nvme_report_from_json(to_json(full_report()), "report.json");
  EXPECT_THAT(read.results[0].bytes_per_s.values, ElementsAre(3.5e9, 3.5 * 0.98e9, 3.5 * 1.02e9));
  EXPECT_EQ(read.results[0].fio_bytes_per_s->values.size(), 3u);
  EXPECT_FALSE(read.results[1].fio_bytes_per_s);
  EXPECT_EQ(read.results[0].fio_job, "libaio, 1 MiB x 16");
  EXPECT_THAT(read.results[1].new_file_bytes_per_s->values, ElementsAre(1.2e9, 1.1e9, 1.3e9));
  EXPECT_FALSE(read.results[0].new_file_bytes_per_s);
  EXPECT_EQ(read.results[3].target, "all");
  EXPECT_EQ(read.drives[0].numa_node, 1);
  EXPECT_EQ(read.drives[0].rotational, false);
  EXPECT_FALSE(read.drives[1].rotational);
  EXPECT_EQ(read.sustained[0].knee, 2u);
  EXPECT_FALSE(read.sustained[1].knee);
  EXPECT_EQ(read.sweep.size(), 3u);
  EXPECT_EQ(read.best_depth, 32);
  EXPECT_THAT(read.notes, ElementsAre("a thing to know"));
}

TEST(NvmeReportJson, ReadsReportsOfBeforeNewFilesWereMeasured) {
  json document = json::parse(to_json(full_report()));
  for (const char* list : {"results", "sweep"})
    for (json& result : document[list]) ASSERT_EQ(result.erase("new_file_bytes_per_s"), 1u);
  const NvmeReport read = nvme_report_from_json(document.dump(), "report.json");
  EXPECT_FALSE(read.results[1].new_file_bytes_per_s);
  EXPECT_EQ(read.results[1].bytes_per_s.values.size(), 3u);
  EXPECT_THAT(format_nvme_report(read), Not(HasSubstr("new files")));
}

TEST(NvmeReportJson, HasUnitsInItsKeysAndSummariesBesideTheSamples) {
  const json document = json::parse(to_json(full_report()));
  EXPECT_EQ(document["schema_version"], 1);
  const json& rates = document["results"][0]["bytes_per_s"];
  EXPECT_EQ(rates["median"], 3.5e9);
  EXPECT_EQ(rates["min"], 3.5 * 0.98e9);
  EXPECT_EQ(rates["max"], 3.5 * 1.02e9);
  EXPECT_GT(rates["stdev"], 0);
  EXPECT_EQ(document["results"][0]["latency_p99_us"], 2500);
  EXPECT_TRUE(document["drives"][1]["numa_node"].is_null());
}

TEST(NvmeReportJson, TakesPathsThatAreNoUtf8) {
  NvmeReport report = small_report();
  report.drives[0].path = "/mnt/\xff";
  EXPECT_EQ(nvme_report_from_json(to_json(report), "r").drives[0].path, "/mnt/\xef\xbf\xbd");
}

TEST(NvmeReportJson, RefusesToWriteWhatIsNoNumber) {
  NvmeReport report = small_report();
  report.results[0].latency.p50_us = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(to_json(report), Error);
}

TEST(NvmeReportJson, RefusesTextThatIsNoReport) {
  EXPECT_THAT(refusal(""), HasSubstr("report.json: not valid JSON"));
  EXPECT_THAT(refusal("{\"format\":"), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal("[]"), HasSubstr("no report of strata bench nvme"));
  EXPECT_THAT(refusal("{}"), HasSubstr("no report of strata bench nvme"));
  EXPECT_THAT(refusal("{\"format\": 3}"), HasSubstr("no report of strata bench nvme"));
  EXPECT_THAT(refusal(std::string(100000, '[')), HasSubstr("nested deeper than"));
  EXPECT_THAT(refusal(std::string("{}\0{}", 5)), HasSubstr("NUL byte"));
}

TEST(NvmeReportJson, RefusesAnotherVersionNamingBoth) {
  EXPECT_THAT(refusal_of([](json& d) { d["schema_version"] = 2; }),
              AllOf(HasSubstr("schema_version 2"), HasSubstr("reads 1")));
  EXPECT_THAT(refusal_of([](json& d) { d["schema_version"] = "1"; }), HasSubstr("no number"));
  EXPECT_THAT(refusal_of([](json& d) { d.erase("schema_version"); }), HasSubstr("missing"));
}

TEST(NvmeReportJson, RefusesEachKeyThatIsMissing) {
  const json whole = json::parse(to_json(full_report()));
  const auto expect_all_needed = [&](const json::json_pointer& place) {
    for (const auto& [key, value] : whole.at(place).items()) {
      if (key == "new_file_bytes_per_s") continue;  // older reports lack it
      json document = whole;
      document.at(place).erase(key);
      EXPECT_NE(refusal(document.dump()), "accepted") << place << " without " << key;
    }
  };
  for (const char* place : {"", "/drives/0", "/results/0", "/results/0/bytes_per_s", "/sweep/1",
                            "/sustained/0", "/sync_seconds"})
    expect_all_needed(json::json_pointer(place));
}

TEST(NvmeReportJson, RefusesEachValueOfAnotherType) {
  const json whole = json::parse(to_json(full_report()));
  const json flat = whole.flatten();
  int changed = 0;
  for (const auto& [place, value] : flat.items()) {
    json document = whole;
    document[json::json_pointer(place)] = json{{"of another", "type"}};
    EXPECT_NE(refusal(document.dump()), "accepted") << place;
    ++changed;
  }
  EXPECT_GT(changed, 100);
}

TEST(NvmeReportJson, NamesThePlaceOfWhatItRefuses) {
  EXPECT_THAT(refusal_of([](json& d) { d["results"][1].erase("depth"); }),
              HasSubstr("report.json: results[1]: 'depth' is missing"));
  EXPECT_THAT(refusal_of([](json& d) { d["results"][1]["pattern"] = "sideways"; }),
              HasSubstr("report.json: results[1].pattern: unknown pattern 'sideways'"));
  EXPECT_THAT(refusal_of([](json& d) { d["drives"][0]["colour"] = 1; }),
              HasSubstr("report.json: drives[0]: unknown key 'colour'"));
}

TEST(NvmeReportJson, RefusesNumbersThatCannotBe) {
  EXPECT_THAT(refusal_of([](json& d) { d["file_bytes"] = -1; }), HasSubstr("file_bytes"));
  EXPECT_THAT(refusal_of([](json& d) { d["file_bytes"] = 1.5; }), HasSubstr("file_bytes"));
  EXPECT_THAT(refusal_of([](json& d) { d["best_depth"] = 1ull << 40; }), HasSubstr("too large"));
  EXPECT_THAT(refusal_of([](json& d) { d["sustained"][0]["interval_s"] = 0; }),
              HasSubstr("interval_s"));
  EXPECT_THAT(refusal_of([](json& d) { d["sustained"][0]["knee_interval"] = 4; }),
              HasSubstr("knee_interval 4"));
  EXPECT_THAT(refusal_of([](json& d) { d["results"][0]["bytes_per_s"]["samples"][0] = -5; }),
              HasSubstr("below 0"));
  std::string huge = to_json(full_report());
  huge.replace(huge.find("1500.0"), 6, "1e9999");
  EXPECT_THAT(refusal(huge), HasSubstr("report.json"));
}

TEST(NvmeReportJson, RefusesMoreResultsThanAnybodyMeasures) {
  NvmeReport report = small_report();
  report.sweep.assign(2000, report.results[0]);
  EXPECT_THAT(refusal(to_json(report)), HasSubstr("sweep has 2000 entries"));
}

TEST(NvmeReportJson, IsRefusedOrShownWhateverByteIsDamaged) {
  const std::string whole = to_json(full_report());
  PhiloxStream random(1, 2);
  int accepted = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text = whole;
    // Any byte breaks the JSON, as a rule; a digit more often gives another number.
    text[random.next_below(text.size())] =
        static_cast<char>(i % 2 == 0 ? random.next_below(256) : '0' + random.next_below(10));
    try {
      const NvmeReport report = nvme_report_from_json(text, "report.json");
      format_nvme_report(report);
      plot_nvme_report(report);
      compare_nvme_reports(report, full_report());
      ++accepted;
    } catch (const ConfigError&) {
    }
  }
  EXPECT_GT(accepted, 100);
  EXPECT_LT(accepted, 2900);
}

// --- Tables

TEST(NvmeReportTable, ShowsMedianAndRangeInGbPerSecond) {
  const std::string text = format_nvme_report(small_report());
  EXPECT_THAT(text, AllOf(HasSubstr("GB is 1e9 bytes"), HasSubstr("3.50 (3.43-3.57)"),
                          HasSubstr("1.80 (1.76-1.84)"), HasSubstr("2.40 (2.35-2.45)")));
  EXPECT_THAT(text, AllOf(HasSubstr("1.50"), HasSubstr("2.50"), HasSubstr("40.0")));
}

TEST(NvmeReportTable, ShowsTheFactsOfTheDrive) {
  EXPECT_THAT(format_nvme_report(small_report()),
              AllOf(HasSubstr("xfs at /mnt (rw,noatime)"), HasSubstr("Drive of a test"),
                    HasSubstr("O_DIRECT aligned to 512 bytes"), HasSubstr("NUMA node 1"),
                    HasSubstr("write cache: write back"), HasSubstr("2.00 MiB"),
                    HasSubstr("io_uring: depth 32")));
}

TEST(NvmeReportTable, ShowsTheRatioToFioOnlyWhereFioRan) {
  EXPECT_THAT(format_nvme_report(small_report()), Not(HasSubstr("fio")));
  EXPECT_THAT(format_nvme_report(full_report()),
              AllOf(HasSubstr("x fio"), HasSubstr("1.03x"), HasSubstr("0.80x"),
                    HasSubstr("fio read on /mnt/a: libaio, 1 MiB x 16")));
}

TEST(NvmeReportTable, ShowsTheRateOfNewFilesBelowThatOfWritesOnlyWhereItWasMeasured) {
  EXPECT_THAT(format_nvme_report(small_report()), Not(HasSubstr("new files")));
  const std::string text = format_nvme_report(full_report());
  EXPECT_THAT(text, HasSubstr("write, new files  /mnt/a"));
  EXPECT_THAT(text, HasSubstr("1.20 (1.10-1.30)"));
  EXPECT_LT(text.find("1.80 (1.76-1.84)"), text.find("write, new files"));
  EXPECT_LT(text.find("write, new files"), text.find("2.40 (2.35-2.45)"));
}

TEST(NvmeReportTable, ShowsTheSweepWithItsBest) {
  const std::string text = format_nvme_report(full_report());
  EXPECT_THAT(text, AllOf(HasSubstr("sweep: read, /mnt/a"), HasSubstr("3.46*"), HasSubstr("2.00 "),
                          HasSubstr("chosen: blocks of 4.00 MiB, 32 in flight")));
  EXPECT_THAT(format_nvme_report(small_report()), Not(HasSubstr("sweep")));
}

TEST(NvmeReportTable, TellsTheKneeOrThatThereWasNone) {
  EXPECT_THAT(format_nvme_report(full_report()),
              AllOf(HasSubstr("sustained write on /mnt/a: 3.00 GB/s for 1 s, then 1.00 GB/s"),
                    HasSubstr("sustained mixed on /mnt/a: 2.10 GB/s (median), no knee in 3 s")));
}

TEST(NvmeReportTable, ShowsFsyncAndNotes) {
  EXPECT_THAT(format_nvme_report(full_report()),
              AllOf(HasSubstr("200 ms (100-300)"), HasSubstr("note: a thing to know")));
}

TEST(NvmeReportTable, StandsForAReportOfNothing) { EXPECT_NE(format_nvme_report({}), ""); }

// --- Comparison

std::string line_with(const std::string& text, const std::string& word) {
  const std::size_t at = text.find(word);
  if (at == std::string::npos) return "";
  const std::size_t begin = text.rfind('\n', at) + 1;
  return text.substr(begin, text.find('\n', at) - begin);
}

TEST(NvmeReportComparison, TellsWhatIsBeyondTheNoise) {
  const NvmeReport a = small_report();
  NvmeReport b = small_report();
  b.results[0] = result_of(NvmePattern::read, "/mnt/a", 3.55);
  b.results[1] = result_of(NvmePattern::write, "/mnt/a", 0.9);
  b.results[2] = result_of(NvmePattern::mixed, "/mnt/a", 3.0);
  const std::string text = compare_nvme_reports(a, b);
  EXPECT_THAT(line_with(text, "read "), AllOf(HasSubstr("1.01x"), HasSubstr("within the noise")));
  EXPECT_THAT(line_with(text, "write "), AllOf(HasSubstr("0.50x"), HasSubstr("B is slower")));
  EXPECT_THAT(line_with(text, "mixed "), AllOf(HasSubstr("1.25x"), HasSubstr("B is faster")));
  EXPECT_THAT(text, Not(HasSubstr("differs")));
}

TEST(NvmeReportComparison, PairsDrivesOfDifferentPathsByOrder) {
  const NvmeReport a = small_report();
  NvmeReport b = small_report();
  for (NvmeResult& result : b.results) result.target = "/data";
  EXPECT_THAT(line_with(compare_nvme_reports(a, b), "read "),
              AllOf(HasSubstr("/mnt/a | /data"), HasSubstr("1.00x")));
}

TEST(NvmeReportComparison, SaysWhatOnlyOneOfThemHas) {
  const NvmeReport a = full_report();
  NvmeReport b = small_report();
  b.results.erase(b.results.begin());
  const std::string text = compare_nvme_reports(a, b);
  EXPECT_THAT(line_with(text, "all drives"), HasSubstr("only in A"));
  EXPECT_THAT(line_with(text, "read "), HasSubstr("only in A"));
  EXPECT_THAT(line_with(compare_nvme_reports(b, a), "all drives"), HasSubstr("only in B"));
}

TEST(NvmeReportComparison, ComparesTheRatesOfNewFiles) {
  NvmeReport a = small_report(), b = small_report();
  EXPECT_THAT(compare_nvme_reports(a, b), Not(HasSubstr("new files")));
  b.results[1].new_file_bytes_per_s = Samples{{0.6e9, 0.5e9, 0.7e9}};
  EXPECT_THAT(line_with(compare_nvme_reports(a, b), "new files"), HasSubstr("only in B"));
  EXPECT_THAT(line_with(compare_nvme_reports(b, a), "new files"), HasSubstr("only in A"));
  a.results[1].new_file_bytes_per_s = Samples{{1.2e9, 1.1e9, 1.3e9}};
  EXPECT_THAT(line_with(compare_nvme_reports(a, b), "new files"),
              AllOf(HasSubstr("1.20 (1.10-1.30)"), HasSubstr("0.50x"), HasSubstr("B is slower")));
}

TEST(NvmeReportComparison, NamesFactsThatDiffer) {
  NvmeReport b = small_report();
  b.kernel = "6.9.1";
  EXPECT_THAT(compare_nvme_reports(small_report(), b),
              AllOf(HasSubstr("6.1.0"), HasSubstr("6.9.1")));
}

// --- Pictures

TEST(NvmeReportPlot, DrawsBarsSweepAndTime) {
  const std::string text = plot_nvme_report(full_report());
  EXPECT_THAT(text, AllOf(HasSubstr("Bandwidth: median and range of 3 samples"),
                          HasSubstr("fio, /mnt/a"), HasSubstr("Sweep: read, /mnt/a, GB/s"),
                          HasSubstr(">3.46</text>"), HasSubstr("Bandwidth over time"),
                          HasSubstr("write falls at 1 s"), Not(HasSubstr("nan"))));
}

TEST(NvmeReportPlot, LeavesOutWhatWasNotMeasured) {
  const std::string text = plot_nvme_report(small_report());
  EXPECT_THAT(text, AllOf(HasSubstr(">3.50</text>"), Not(HasSubstr("Sweep")),
                          Not(HasSubstr("over time")), Not(HasSubstr("fio"))));
}

}  // namespace
}  // namespace strata
