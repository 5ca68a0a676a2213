#include "strata/cli/commands.hpp"

#include <fmt/format.h>

#include <csignal>
#include <exception>

#include "cli/command.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

constexpr int exit_failure = 1;
constexpr int exit_usage = 2;

int run(const Action& action) {
  try {
    return action();
  } catch (const ConfigError& error) {
    fmt::print(stderr, "strata: {}\n", error.what());
    return exit_usage;
  } catch (const std::exception& error) {
    fmt::print(stderr, "strata: {}\n", error.what());
    return exit_failure;
  }
}

}  // namespace

int run_command_line(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // A file-size limit is an error to report, not a death.
  std::signal(SIGPIPE, SIG_IGN);  // Nor does a run end because nobody reads its output any more.
  CLI::App app("Strata fine-tunes language models larger than the GPU memory at hand.", "strata");
  app.set_version_flag("--version", "strata " STRATA_VERSION);
  app.require_subcommand(1);
  Action action;
  add_make_model(app, action);
  add_prepare(app, action);
  add_plan(app, action);
  add_train(app, action);
  add_checkpoint(app, action);
  add_eval(app, action);
  add_export(app, action);
  add_inspect(app, action);
  add_doctor(app, action);
  add_bench(app, action);
  add_help_config(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : exit_usage;
  }
  return run(action);
}

}  // namespace strata
