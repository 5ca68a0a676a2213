#include <fmt/format.h>

#include "cli/command.hpp"
#include "strata/cli/config.hpp"

namespace strata {

void add_help_config(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("help-config", "Every key of a config: default, type and meaning");
  command->callback([&action] {
    action = [] {
      fmt::print("{}", config_reference_markdown());
      return 0;
    };
  });
}

}  // namespace strata
