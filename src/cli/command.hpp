#pragma once
// Each command adds its options to the command line and gives the action to run when it is the one
// chosen.

#include <CLI/CLI.hpp>
#include <functional>

namespace strata {

using Action = std::function<int()>;

void add_make_model(CLI::App& app, Action& action);
void add_prepare(CLI::App& app, Action& action);
void add_plan(CLI::App& app, Action& action);
void add_train(CLI::App& app, Action& action);
void add_checkpoint(CLI::App& app, Action& action);
void add_eval(CLI::App& app, Action& action);
void add_export(CLI::App& app, Action& action);
void add_inspect(CLI::App& app, Action& action);
void add_doctor(CLI::App& app, Action& action);
void add_bench(CLI::App& app, Action& action);
void add_help_config(CLI::App& app, Action& action);

}  // namespace strata
