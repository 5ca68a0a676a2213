#include "strata/measure/nvme_bench.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "drive_directory.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"
#include "strata/topology/topology.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::TempDirectory;

NvmeBenchOptions tiny(std::vector<std::string> paths) {
  NvmeBenchOptions options;
  options.paths = std::move(paths);
  options.file_bytes = 4 * MiB;
  options.buffer_bytes = 2 * MiB;
  options.block_bytes = 256 * KiB;
  options.depth = 4;
  options.duration_s = 0.02;
  options.repeats = 2;
  options.sweep_s = 0.1;
  return options;
}

std::string refusal_of(const NvmeBenchOptions& options) {
  try {
    bench_nvme(options);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "not refused";
}

using NvmeBenchOnADrive = OnADrive;

TEST_F(NvmeBenchOnADrive, MeasuresEveryPatternAndLeavesNothing) {
  const NvmeReport report = bench_nvme(tiny({directory_.path()}));
  ASSERT_EQ(report.results.size(), 3u);
  for (std::size_t at = 0; at < 3; ++at) {
    const NvmeResult& result = report.results[at];
    EXPECT_EQ(result.pattern, nvme_patterns[at]);
    EXPECT_EQ(result.target, directory_.path());
    EXPECT_EQ(result.block_bytes, 256 * KiB);
    EXPECT_EQ(result.depth, 4);
    EXPECT_EQ(result.bytes_per_s.values.size(), 2u);
    EXPECT_GT(result.bytes_per_s.min(), 0);
    EXPECT_EQ(result.cpu_seconds_per_gb.values.size(), 2u);
    EXPECT_GT(result.latency.p50_us, 0);
    EXPECT_LE(result.latency.p50_us, result.latency.p99_us);
    EXPECT_LE(result.latency.p99_us, result.latency.max_us);
    EXPECT_FALSE(result.fio_bytes_per_s);
    EXPECT_EQ(result.new_file_bytes_per_s.has_value(), result.pattern == NvmePattern::write);
  }
  ASSERT_TRUE(report.results[1].new_file_bytes_per_s);
  EXPECT_EQ(report.results[1].new_file_bytes_per_s->values.size(), 2u);
  EXPECT_GT(report.results[1].new_file_bytes_per_s->min(), 0);
  EXPECT_TRUE(fs::is_empty(directory_.path()));
}

TEST_F(NvmeBenchOnADrive, ReportsWhatItRanOnAndVerified) {
  const NvmeReport report = bench_nvme(tiny({directory_.path()}));
  EXPECT_EQ(report.file_bytes, 4 * MiB);
  EXPECT_EQ(report.verified_bytes, 8 * MiB);
  EXPECT_EQ(report.repeats, 2);
  EXPECT_EQ(report.sync_seconds.values.size(), 2u);
  EXPECT_EQ(report.best_block_bytes, 256 * KiB);
  EXPECT_EQ(report.best_depth, 4);
  EXPECT_GE(report.buffer_page_bytes, 4 * KiB);
  EXPECT_FALSE(report.kernel.empty());
  EXPECT_FALSE(report.engine.empty());
  EXPECT_EQ(report.started_at.size(), 20u);
  ASSERT_EQ(report.drives.size(), 1u);
  EXPECT_EQ(report.drives[0].path, directory_.path());
  EXPECT_TRUE(report.sweep.empty());
  EXPECT_TRUE(report.sustained.empty());
}

TEST_F(NvmeBenchOnADrive, MeasuresOnlyThePatternsAskedForAndWritesOnlyTheirFiles) {
  NvmeBenchOptions options = tiny({directory_.path()});
  options.patterns = {NvmePattern::read};
  const NvmeReport report = bench_nvme(options);
  ASSERT_EQ(report.results.size(), 1u);
  EXPECT_EQ(report.verified_bytes, 4 * MiB);
  EXPECT_TRUE(report.sync_seconds.empty());
}

TEST_F(NvmeBenchOnADrive, MeasuresSeveralPathsAloneAndTogether) {
  const TempDirectory second;
  NvmeBenchOptions options = tiny({directory_.path(), second.path()});
  options.patterns = {NvmePattern::mixed};
  options.sustained_s = 0.01;
  const NvmeReport report = bench_nvme(options);
  ASSERT_EQ(report.results.size(), 3u);
  EXPECT_EQ(report.results[1].target, second.path());
  EXPECT_EQ(report.results[2].target, "all");
  EXPECT_EQ(report.results[2].depth, 4);
  EXPECT_EQ(report.sustained.size(), 3u);
  EXPECT_EQ(report.drives.size(), 2u);
  EXPECT_TRUE(fs::is_empty(second.path()));
}

TEST_F(NvmeBenchOnADrive, WritesNewFilesOnEachPathAndOnAllAtOnce) {
  const TempDirectory second;
  NvmeBenchOptions options = tiny({directory_.path(), second.path()});
  options.patterns = {NvmePattern::write};
  int told = 0;
  options.watch.progress = [&](const std::string& what, double) {
    told += what.find("new files") != std::string::npos;
  };
  const NvmeReport report = bench_nvme(options);
  ASSERT_EQ(report.results.size(), 3u);
  for (const NvmeResult& result : report.results) {
    ASSERT_TRUE(result.new_file_bytes_per_s) << result.target;
    EXPECT_EQ(result.new_file_bytes_per_s->values.size(), 2u);
    EXPECT_GT(result.new_file_bytes_per_s->min(), 0);
  }
  EXPECT_GE(told, 6);
  EXPECT_TRUE(fs::is_empty(directory_.path()));
  EXPECT_TRUE(fs::is_empty(second.path()));
}

// At its first sample, when the file is there.
TEST_F(NvmeBenchOnADrive, StopsWithinANewFileAndCleansUp) {
  std::atomic<bool> stop{false};
  NvmeBenchOptions options = tiny({directory_.path()});
  options.patterns = {NvmePattern::write};
  options.watch.stop = &stop;
  bool was_there = false;
  options.watch.progress = [&](const std::string& what, double) {
    for (const auto& entry : fs::recursive_directory_iterator(directory_.path()))
      was_there = was_there || entry.path().filename() == "new";
    stop = stop || (was_there && what.find("new files") != std::string::npos);
  };
  EXPECT_THROW(bench_nvme(options), Interrupted);
  EXPECT_TRUE(was_there);
  EXPECT_TRUE(fs::is_empty(directory_.path()));
}

TEST_F(NvmeBenchOnADrive, SweepsBlocksAndDepthsThatFitAndUsesTheBest) {
  NvmeBenchOptions options = tiny({directory_.path()});
  options.patterns = {NvmePattern::mixed};
  options.sweep = Sweep::on;
  const NvmeReport report = bench_nvme(options);
  // 256 KiB x 1, 4, 8 and 1 MiB x 1: no other has its blocks in flight within 2 MiB.
  ASSERT_EQ(report.sweep.size(), 4u);
  EXPECT_EQ(report.results[0].block_bytes, report.best_block_bytes);
  EXPECT_EQ(report.results[0].depth, report.best_depth);
  for (const NvmeResult& point : report.sweep) EXPECT_GT(point.bytes_per_s.min(), 0);
}

TEST_F(NvmeBenchOnADrive, ShowsProgressThatOnlyRises) {
  NvmeBenchOptions options = tiny({directory_.path()});
  options.sweep = Sweep::on;
  double last = 0;
  int calls = 0;
  options.watch.progress = [&](const std::string& what, double done) {
    EXPECT_FALSE(what.empty());
    EXPECT_GE(done, last);
    EXPECT_LE(done, 1);
    last = done;
    ++calls;
  };
  bench_nvme(options);
  EXPECT_GT(calls, 10);
  EXPECT_GT(last, 0.5);
}

TEST_F(NvmeBenchOnADrive, StopsWhereverItIsAskedAndCleansUp) {
  for (const int calls_before : {0, 3, 6, 12}) {
    std::atomic<bool> stop{false};
    int calls = 0;
    NvmeBenchOptions options = tiny({directory_.path()});
    options.watch.stop = &stop;
    options.watch.progress = [&](const std::string&, double) { stop = ++calls > calls_before; };
    EXPECT_THROW(bench_nvme(options), Interrupted);
    EXPECT_TRUE(fs::is_empty(directory_.path())) << calls_before;
  }
}

TEST_F(NvmeBenchOnADrive, SaysSoWhenFioIsMissing) {
  NvmeBenchOptions options = tiny({directory_.path()});
  options.patterns = {NvmePattern::read};
  options.fio = CompareFio::yes;
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", directory_.path().c_str(), 1);
  const NvmeReport report = bench_nvme(options);
  ::setenv("PATH", path.c_str(), 1);
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_THAT(report.notes[0], HasSubstr("fio is not installed"));
  EXPECT_FALSE(report.results[0].fio_bytes_per_s);
}

TEST_F(NvmeBenchOnADrive, RefusesFilesThatDoNotFitWithWhatIsNeededAndFree) {
  NvmeBenchOptions options = tiny({directory_.path()});
  options.file_bytes = read_file_system(directory_.path()).total_bytes;
  const std::string refusal = refusal_of(options);
  EXPECT_THAT(refusal, HasSubstr("too little room"));
  EXPECT_THAT(refusal, HasSubstr("are needed"));
  EXPECT_THAT(refusal, HasSubstr("are free"));
  EXPECT_TRUE(fs::is_empty(directory_.path()));
}

TEST_F(NvmeBenchOnADrive, CountsTheRoomOfPathsOnOneFileSystemTogether) {
  const TempDirectory second;
  NvmeBenchOptions options = tiny({directory_.path(), second.path()});
  // Fits once, with its two files and the new one, and not twice.
  options.file_bytes = read_file_system(directory_.path()).free_bytes / 4;
  EXPECT_THAT(refusal_of(options), HasSubstr("too little room"));
}

TEST(NvmeBench, RefusesMemoryUnderTheNameOfADrive) {
  if (!fs::is_directory("/dev/shm") || !read_file_system("/dev/shm").in_memory)
    GTEST_SKIP() << "no tmpfs at /dev/shm";
  const std::string refusal = refusal_of(tiny({"/dev/shm"}));
  EXPECT_THAT(refusal, HasSubstr("/dev/shm is on tmpfs"));
  EXPECT_THAT(refusal, HasSubstr("memory"));
}

TEST(NvmeBench, RefusesWhatIsNoDirectory) {
  const TempDirectory directory;
  EXPECT_THAT(refusal_of(tiny({directory.file("missing")})), HasSubstr("is not a directory"));
}

TEST(NvmeBench, RefusesOptionsThatMeanNothing) {
  const TempDirectory directory;
  const auto with = [&](auto change) {
    NvmeBenchOptions options = tiny({directory.path()});
    change(options);
    return refusal_of(options);
  };
  EXPECT_THAT(with([](auto& o) { o.paths.clear(); }), HasSubstr("no path"));
  EXPECT_THAT(with([](auto& o) { o.patterns.clear(); }), HasSubstr("no pattern"));
  EXPECT_THAT(with([](auto& o) { o.repeats = 0; }), HasSubstr("repeats"));
  EXPECT_THAT(with([](auto& o) { o.depth = -1; }), HasSubstr("depth"));
  EXPECT_THAT(with([](auto& o) { o.duration_s = 0; }), HasSubstr("seconds"));
  EXPECT_THAT(with([](auto& o) { o.block_bytes = 5000; }), HasSubstr("5000 bytes"));
  EXPECT_THAT(with([](auto& o) { o.file_bytes = 128 * KiB; }), HasSubstr("hold no block"));
  EXPECT_THAT(with([](auto& o) { o.buffer_bytes = 4096; }), HasSubstr("hold no block"));
  EXPECT_THAT(with([](auto& o) { o.io_engine = "steam"; }), HasSubstr("steam"));
  EXPECT_TRUE(fs::is_empty(directory.path()));
}

}  // namespace
}  // namespace strata
