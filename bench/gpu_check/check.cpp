#include "gpu_check/check.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <iterator>
#include <system_error>

namespace strata {
namespace {

namespace fs = std::filesystem;

constexpr double seconds_worth_starting = 2;
constexpr std::size_t logged_bytes = 64 << 10;  // of one program

}  // namespace

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(fmt::format("{} was not written", path.string()));
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_file(const fs::path& path, const std::string& text) {
  const fs::path partial = path.string() + ".partial";
  {
    std::ofstream file(partial, std::ios::binary | std::ios::trunc);
    file << text;
    if (!file.flush()) throw std::runtime_error(fmt::format("cannot write {}", partial.string()));
  }
  fs::rename(partial, path);
}

Check::Check(CheckOptions options) : options_(std::move(options)) {
  std::error_code ignored;
  fs::remove(options_.out / "output.txt", ignored);
  started_at_ = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

double Check::seconds_left() const {
  const std::chrono::duration<double> gone = std::chrono::steady_clock::now() - begin_;
  return options_.budget_seconds - gone.count();
}

CheckHead Check::head() const {
  return {options_.commit, started_at_, facts.gpu, options_.budget_seconds - seconds_left(),
          options_.budget_seconds};
}

bool Check::has_program(const std::string& program) const {
  return fs::exists(options_.programs / program);
}

std::string Check::last_output() const { return read_file(scratch("output.txt")); }

fs::path Check::scratch(const std::string& name) const { return options_.work / name; }

std::map<std::string, std::string> Check::environment() const {
  std::map<std::string, std::string> added;
  if (options_.hides_gpus) added["CUDA_VISIBLE_DEVICES"] = "";
  return added;
}

ProgramEnd Check::run_call(ProgramCall call) {
  if (seconds_left() < seconds_worth_starting)
    throw OutOfBudget(fmt::format("the {:.0f} s are used up", options_.budget_seconds));
  call.seconds_max = std::min(call.seconds_max, seconds_left());
  call.output_file = scratch("output.txt");
  const ProgramEnd end = run_program(call);
  log(call, end);
  return end;
}

// Of all programs in one file: few come back from where GPUs are lent.
void Check::log(const ProgramCall& call, const ProgramEnd& end) const {
  std::ofstream file(options_.out / "output.txt", std::ios::binary | std::ios::app);
  file << "$";
  for (const std::string& argument : call.arguments) file << ' ' << argument;
  file << fmt::format("\n# {:.1f} s, {}\n", end.seconds, complaint(end));
  const std::string printed = last_output();
  file << printed.substr(printed.size() - std::min(printed.size(), logged_bytes)) << "\n";
}

ProgramEnd Check::run(const std::string& program, const std::vector<std::string>& arguments,
                      double seconds_max) {
  ProgramCall call;
  call.arguments.push_back((options_.programs / program).string());
  call.arguments.insert(call.arguments.end(), arguments.begin(), arguments.end());
  call.seconds_max = seconds_max;
  call.environment = environment();
  if (!options_.library_path.empty()) {
    const char* ours = ::getenv("LD_LIBRARY_PATH");
    call.environment["LD_LIBRARY_PATH"] =
        options_.library_path + (ours == nullptr ? "" : std::string(":") + ours);
  }
  return run_call(std::move(call));
}

ProgramEnd Check::run_foreign(const std::vector<std::string>& arguments, double seconds_max) {
  return run_call({arguments, seconds_max, {}, environment()});
}

void Check::keep(std::vector<CheckRow> rows, double seconds) {
  // A part's time is told in its first row, unless its rows know their own.
  const bool told = std::ranges::any_of(rows, [](const CheckRow& row) { return row.seconds > 0; });
  if (!told && !rows.empty()) rows.front().seconds = seconds;
  for (CheckRow& row : rows) {
    fmt::print(stderr, "gpu-check: {:3.0f} s: {}: {}\n", head().seconds, row.part,
               name_of(row.outcome));
    rows_.push_back(std::move(row));
  }
  write_reports();
}

// What cannot be kept can still be printed.
void Check::write_reports() const try {
  write_file(options_.out / "gpu-check.txt", format_table(head(), rows_));
  write_file(options_.out / "gpu-check.json", format_json(head(), rows_));
} catch (const std::exception& why) {
  fmt::print(stderr, "gpu-check: the table is not kept: {}\n", why.what());
}

void Check::run_part(const std::vector<std::string>& names, const Part& part) {
  const double before = seconds_left();
  std::vector<CheckRow> rows;
  try {
    rows = part(*this);
  } catch (const OutOfBudget& why) {
    rows = none_run(names, why.what());
  } catch (const std::exception& why) {
    for (const std::string& name : names) rows.push_back(failed(name, why.what()));
  }
  keep(std::move(rows), before - seconds_left());
}

}  // namespace strata
