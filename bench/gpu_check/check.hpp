#pragma once
// A Check runs parts one after another within a time budget and keeps what they came to. After each
// part table and JSON are written anew, so that a check that is killed leaves what it has seen.
// Thread contract: one thread.

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "gpu_check/check_report.hpp"
#include "gpu_check/check_row.hpp"
#include "gpu_check/program_run.hpp"

namespace strata {

enum class Extent { full, quick };

struct CheckOptions {
  std::filesystem::path programs;      // strata, cuda_test ...
  std::filesystem::path work;          // scratch on the drive to be measured; must exist
  std::filesystem::path out;           // gets the table, the JSON and a few more; must exist
  std::filesystem::path memory;        // scratch in memory; empty: none is to be had
  std::filesystem::path torch_script;  // empty: none is at hand
  std::string library_path;            // put before LD_LIBRARY_PATH of our programs; empty: nothing
  std::string commit;
  std::string model;  // of the large run; empty: as fits
  double budget_seconds = 300;
  Extent extent = Extent::full;
  bool hides_gpus = false;  // a dry run
};

// What is known of the machine by now.
struct MachineFacts {
  std::string gpu;         // empty: none that CUDA can use
  std::string why_no_gpu;  // where there is none
  std::string profile;     // machine.yaml; empty: not measured
};

struct OutOfBudget : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Check {
 public:
  explicit Check(CheckOptions options);

  // Rows of one part. `names`: what its rows are called when it fails as a whole.
  using Part = std::function<std::vector<CheckRow>(Check&)>;
  void run_part(const std::vector<std::string>& names, const Part& part);

  // One of our programs, within `seconds_max` and what is left. Throws OutOfBudget when that is
  // nothing.
  ProgramEnd run(const std::string& program, const std::vector<std::string>& arguments,
                 double seconds_max);
  // Somebody else's, found on PATH.
  ProgramEnd run_foreign(const std::vector<std::string>& arguments, double seconds_max);
  bool has_program(const std::string& program) const;
  // All that the last program printed.
  std::string last_output() const;
  // Below `work`: what only the check itself reads.
  std::filesystem::path scratch(const std::string& name) const;

  double seconds_left() const;
  bool has_gpu() const { return !facts.gpu.empty(); }
  const CheckOptions& options() const { return options_; }
  const std::vector<CheckRow>& rows() const { return rows_; }
  CheckHead head() const;

  MachineFacts facts;

 private:
  ProgramEnd run_call(ProgramCall call);
  void log(const ProgramCall& call, const ProgramEnd& end) const;
  std::map<std::string, std::string> environment() const;
  void keep(std::vector<CheckRow> rows, double seconds);
  void write_reports() const;

  CheckOptions options_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::string started_at_;
  std::vector<CheckRow> rows_;
};

// Throws std::runtime_error.
std::string read_file(const std::filesystem::path& path);
void write_file(const std::filesystem::path& path, const std::string& text);

}  // namespace strata
