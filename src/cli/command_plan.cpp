#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/run_options.hpp"
#include "cli/text_file.hpp"
#include "strata/train/planned_run.hpp"

namespace strata {
namespace {

void write_json(const std::string& path, const PlannedRun& run) {
  replace_text_file(path, plan_to_json(run.program, run.plan) + "\n");
  fmt::print("wrote {}\n", path);
}

}  // namespace

void add_plan(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("plan", "Show what would live where, without running");
  auto run = add_run_options(*command);
  auto json = std::make_shared<std::string>();
  command->add_option("--json", *json, "Also write the whole plan, ops and edges included");
  command->callback([&action, run, json] {
    action = [run, json] {
      const RunConfig config = load_run_config(*run);
      const PlannedRun planned = plan_run(config, Purpose::train);
      print_plan(config, planned);
      if (!json->empty()) write_json(*json, planned);
      return 0;
    };
  });
}

}  // namespace strata
