#include <fmt/format.h>

#include <memory>

#include "cli/command.hpp"
#include "cli/run_options.hpp"
#include "cli/text_file.hpp"
#include "strata/cli/config.hpp"
#include "strata/measure/doctor.hpp"
#include "strata/telemetry/progress.hpp"

namespace strata {
namespace {

struct DoctorArguments {
  std::vector<std::string> paths;
  std::string config, json;
};

DoctorOptions doctor_options(const DoctorArguments& options) {
  DoctorOptions chosen{options.paths, ""};
  if (options.config.empty()) return chosen;
  const RunConfig config = read_config(options.config, {});
  print_warnings(config.warnings);
  const auto& paths = config.offload.nvme_paths;
  chosen.paths.insert(chosen.paths.end(), paths.begin(), paths.end());
  chosen.output_dir = config.output_dir.string();
  return chosen;
}

int doctor(const DoctorArguments& options) {
  const std::vector<Finding> findings = examine(doctor_options(options));
  const Paint paint = terminal_style(stdout) == Style::color ? Paint::ansi : Paint::none;
  fmt::print("{}", format_findings(findings, paint));
  if (options.paths.empty() && options.config.empty())
    fmt::print(
        "No drive was looked at: name directories with --path, or a config with --config.\n");
  if (!options.json.empty()) replace_text_file(options.json, findings_to_json(findings));
  return overall_health(findings) == Health::broken ? 1 : 0;
}

}  // namespace

void add_doctor(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "doctor",
      "Look at this machine: what works, what costs speed, what is broken and how to "
      "mend it. Exit code 1 when something is broken");
  auto options = std::make_shared<DoctorArguments>();
  command->add_option("--path", options->paths,
                      "Directory meant for offload.nvme_paths; repeatable");
  command
      ->add_option("--config", options->config, "Look at nvme_paths and output_dir of this config")
      ->check(CLI::ExistingFile);
  command->add_option("--json", options->json, "Write the findings to this file as well");
  command->callback([&action, options] { action = [options] { return doctor(*options); }; });
}

}  // namespace strata
