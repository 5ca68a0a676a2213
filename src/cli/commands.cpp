#include "strata/cli/commands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "strata/cli/config.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

constexpr int exit_failure = 1;
constexpr int exit_usage = 2;

// What was printed and not written yet; a reader that went away wanted no more.
void flush_output() {
  if (std::fflush(stdout) != 0 && errno != EPIPE)
    throw SystemError("write", "standard output", errno);
}

int run(const Action& action) {
  try {
    const int status = action();
    flush_output();
    return status;
  } catch (const ConfigError& error) {
    fmt::print(stderr, "strata: {}\n", error.what());
    return exit_usage;
  } catch (const std::exception& error) {
    fmt::print(stderr, "strata: {}\n", error.what());
    return exit_failure;
  }
}

// CLI11 says that a command is missing, not that this is none. Empty: it is one.
std::string unknown_command(const CLI::App& app, int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "";
  std::vector<std::string> known;
  for (const CLI::App* command : app.get_subcommands({})) known.push_back(command->get_name());
  if (name.empty() || name.starts_with('-') || std::ranges::count(known, name) > 0) return "";
  const std::string nearest = nearest_name(name, known);
  return fmt::format("strata: there is no command '{}'; {}\n", name,
                     nearest.empty() ? "`strata --help` lists those that there are"
                                     : fmt::format("did you mean '{}'?", nearest));
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
  if (const std::string text = unknown_command(app, argc, argv); !text.empty()) {
    fmt::print(stderr, "{}", text);
    return exit_usage;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : exit_usage;
  }
  return run(action);
}

}  // namespace strata
