#include <fmt/format.h>

#include "gpu_check/gpu_figures.hpp"
#include "gpu_check/parts.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;

// Twice of the profile: the drive may have to be left out.
constexpr double gpu_seconds_max = 90, profile_seconds_max = 75;
const std::string profile_name = "machine profile";

std::vector<CheckRow> measure_gpu(Check& check) {
  if (!check.has_gpu()) return none_run(gpu_bench_parts(), check.facts.why_no_gpu);
  const auto file = check.options().out / "bench-gpu.json";
  const char* samples = check.options().extent == Extent::quick ? "5" : "20";
  const ProgramEnd end =
      check.run("strata", {"bench", "gpu", "--seconds", samples, "--json", file}, gpu_seconds_max);
  if (end.succeeded()) return gpu_bench_rows(read_file(file));
  std::vector<CheckRow> rows;
  for (const std::string& part : gpu_bench_parts())
    rows.push_back(failed(part, complaint(end), end.output_tail));
  return rows;
}

// A host that stands in for a GPU, and a check of the check itself, get small sizes.
std::vector<std::string> profile_sizes(const Check& check) {
  if (check.has_gpu() && check.options().extent == Extent::full)
    return {"--repeats", "2", "--nvme-size", "256MiB"};
  return {"--repeats",
          "1",
          "--widths",
          "64,256",
          "--tokens",
          "256",
          "--count",
          "2e6",
          "--size",
          "32MiB",
          "--nvme-size",
          "64MiB",
          "--nvme-duration",
          "0.1",
          "--attention-tokens",
          "256"};
}

struct ProfileFiles {
  fs::path report, profile, drive;
};

ProgramEnd run_bench_all(Check& check, const ProfileFiles& files, bool with_drive) {
  std::vector<std::string> arguments{"bench",       "all",    "--write-profile",
                                     files.profile, "--json", files.report};
  if (with_drive) arguments.insert(arguments.end(), {"--nvme-path", files.drive});
  const auto sizes = profile_sizes(check);
  arguments.insert(arguments.end(), sizes.begin(), sizes.end());
  return check.run("strata", arguments, profile_seconds_max);
}

// A drive that cannot be measured costs what needs one, and no more.
std::vector<CheckRow> measure_profile(Check& check) {
  const fs::path out = check.options().out;
  const ProfileFiles files{out / "machine.json", out / "machine.yaml", check.scratch("nvme")};
  fs::create_directories(files.drive);
  ProgramEnd end = run_bench_all(check, files, true);
  std::string note;
  if (!end.succeeded()) {
    note = "; without a drive: " + complaint(end);
    end = run_bench_all(check, files, false);
  }
  if (!end.succeeded()) return {failed(profile_name, complaint(end), end.output_tail)};
  CheckRow row = profile_row(profile_name, read_file(files.report));
  row.told += note;
  check.facts.profile = files.profile.string();
  return {row};
}

}  // namespace

void check_rates(Check& check) {
  check.run_part(gpu_bench_parts(), measure_gpu);
  check.run_part({profile_name}, measure_profile);
}

}  // namespace strata
