#include <fmt/format.h>

#include <memory>

#include "cli/command_bench.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/plain_file.hpp"
#include "strata/measure/gpu_report.hpp"
#include "strata/measure/nvme_report.hpp"
#include "strata/measure/pass_report.hpp"

namespace strata {
namespace {

constexpr std::uint64_t report_bytes_max = 64 * MiB;

struct Files {
  std::string a, b;
};

std::string compared(const Files& files) {
  const std::string a = read_text_file(files.a, report_bytes_max);
  const std::string b = read_text_file(files.b, report_bytes_max);
  if (is_pass_report(a) || is_pass_report(b))
    return compare_pass_reports(pass_report_from_json(a, files.a),
                                pass_report_from_json(b, files.b));
  if (is_gpu_report(a) || is_gpu_report(b))
    return compare_gpu_reports(gpu_report_from_json(a, files.a), gpu_report_from_json(b, files.b));
  return compare_nvme_reports(nvme_report_from_json(a, files.a), nvme_report_from_json(b, files.b));
}

int compare(const Files& files) {
  const std::string text = compared(files);
  fmt::print("A is {}, B is {}\n{}", files.a, files.b, text);
  return 0;
}

}  // namespace

void add_bench_compare(CLI::App& bench, Action& action) {
  CLI::App* command =
      bench.add_subcommand("compare", "Compare two reports of one kind that --json wrote");
  auto files = std::make_shared<Files>();
  command->add_option("a", files->a, "The report to compare with")
      ->required()
      ->check(CLI::ExistingFile);
  command->add_option("b", files->b, "The report to be judged")
      ->required()
      ->check(CLI::ExistingFile);
  command->callback([&action, files] { action = [files] { return compare(*files); }; });
}

}  // namespace strata
