#include <fmt/format.h>

#include <memory>

#include "cli/command_bench.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/plain_file.hpp"
#include "strata/measure/nvme_report.hpp"

namespace strata {
namespace {

constexpr std::uint64_t report_bytes_max = 64 * MiB;

struct Files {
  std::string a, b;
};

NvmeReport read_report(const std::string& path) {
  return nvme_report_from_json(read_text_file(path, report_bytes_max), path);
}

int compare(const Files& files) {
  const NvmeReport a = read_report(files.a), b = read_report(files.b);
  fmt::print("A is {}, B is {}\n{}", files.a, files.b, compare_nvme_reports(a, b));
  return 0;
}

}  // namespace

void add_bench_compare(CLI::App& bench, Action& action) {
  CLI::App* command =
      bench.add_subcommand("compare", "Compare two reports that bench nvme --json wrote");
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
