#include "fio.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "child_process.hpp"
#include "strata/core/bytes.hpp"

namespace strata {
namespace {

using PlainJson = nlohmann::json;

const std::vector<std::string> fio_environment = {"GLIBC_TUNABLES=glibc.malloc.hugetlb=1"};

constexpr std::array sweep_blocks = {1 * MiB, 4 * MiB, 16 * MiB};
constexpr std::array sweep_depths = {8, 32};

// fio takes a colon for the end of a name.
std::string fio_file_name(const std::string& path) {
  std::string name;
  for (const char c : path) {
    if (c == ':' || c == '\\') name += '\\';
    name += c;
  }
  return name;
}

std::string_view direction(NvmePattern pattern) {
  if (pattern == NvmePattern::mixed) return "rw";
  return pattern == NvmePattern::read ? "read" : "write";
}

void append_job(std::vector<std::string>& arguments, const FioJob& job, std::size_t number) {
  const std::string& file = job.pattern == NvmePattern::read ? job.source : job.target;
  for (const std::string& argument :
       {fmt::format("--name=drive{}", number), "--filename=" + fio_file_name(file),
        fmt::format("--rw={}", direction(job.pattern)), fmt::format("--size={}", job.file_bytes),
        "--ioengine=" + job.setup.engine, fmt::format("--bs={}", job.setup.block_bytes),
        fmt::format("--iodepth={}", job.setup.depth)}) {
    arguments.push_back(argument);
  }
  if (job.setup.engine != "io_uring") return;
  arguments.emplace_back("--fixedbufs");
  arguments.emplace_back("--registerfiles");
}

struct FioTotals {
  double bytes_per_s = 0, bytes = 0, cpu_seconds = 0;
};

void add_job(FioTotals& totals, const PlainJson& job) {
  double run_ms = job.value("job_runtime", 0.0);
  for (const char* way : {"read", "write"}) {
    const PlainJson& one = job.at(way);
    totals.bytes_per_s += one.at("bw_bytes").get<double>();
    totals.bytes += one.at("io_bytes").get<double>();
    run_ms = std::max(run_ms, one.at("runtime").get<double>());
  }
  const double percent = job.at("usr_cpu").get<double>() + job.at("sys_cpu").get<double>();
  totals.cpu_seconds += percent / 100 * run_ms * 1e-3;
}

std::optional<FioSample> sample_of(const PlainJson& report) {
  FioTotals totals;
  for (const PlainJson& job : report.at("jobs")) {
    if (job.at("error").get<int>() != 0) return std::nullopt;
    add_job(totals, job);
  }
  if (totals.bytes <= 0) return std::nullopt;
  return FioSample{totals.bytes_per_s, totals.cpu_seconds / (totals.bytes * 1e-9)};
}

}  // namespace

std::string FioSetup::text() const {
  return fmt::format("{}, {} x {}", engine, format_bytes(block_bytes), depth);
}

std::vector<FioSetup> fio_setups(std::uint64_t file_bytes) {
  std::vector<FioSetup> setups;
  for (const char* engine : {"io_uring", "libaio"}) {
    for (const std::uint64_t block : sweep_blocks) {
      for (const int depth : sweep_depths) {
        if (block <= file_bytes) setups.push_back({engine, block, depth});
      }
    }
  }
  return setups;
}

FioPresence find_fio() {
  const auto output = run_child({"fio", "--version"}, {}, [] {});
  return output && output->exit_status == 0 ? FioPresence::installed : FioPresence::missing;
}

std::vector<std::string> fio_arguments(const std::vector<FioJob>& jobs, double duration_s,
                                       FioStart start) {
  std::vector<std::string> arguments = {
      "fio",
      "--output-format=json",
      "--eta=never",
      "--direct=1",
      "--allow_file_create=0",
      "--fallocate=none",
      "--scramble_buffers=0",
      "--time_based",
      fmt::format("--runtime={}ms", static_cast<std::int64_t>(duration_s * 1e3))};
  if (start == FioStart::left_out) arguments.emplace_back("--ramp_time=200ms");
  for (std::size_t number = 0; number < jobs.size(); ++number)
    append_job(arguments, jobs[number], number);
  return arguments;
}

std::optional<FioSample> parse_fio(const std::string& text) {
  // Warnings come before the report.
  const std::size_t begin = text.find('{');
  if (begin == std::string::npos) return std::nullopt;
  try {
    return sample_of(
        PlainJson::parse(text.begin() + static_cast<std::ptrdiff_t>(begin), text.end()));
  } catch (const PlainJson::exception&) {
    return std::nullopt;
  }
}

std::optional<FioSample> run_fio(const std::vector<FioJob>& jobs, double duration_s, FioStart start,
                                 const std::function<void()>& tick) {
  const auto output = run_child(fio_arguments(jobs, duration_s, start), fio_environment, tick);
  if (!output || output->exit_status != 0) return std::nullopt;
  return parse_fio(output->text);
}

}  // namespace strata
