#pragma once
// The measurements below `strata bench`, each a command of its own.

#include "cli/command.hpp"

namespace strata {

void add_bench_nvme(CLI::App& bench, Action& action);
void add_bench_memory(CLI::App& bench, Action& action);
void add_bench_adam(CLI::App& bench, Action& action);
void add_bench_gpu(CLI::App& bench, Action& action);
void add_bench_all(CLI::App& bench, Action& action);
void add_bench_compare(CLI::App& bench, Action& action);

}  // namespace strata
