#include "cli/command_bench.hpp"

namespace strata {

void add_bench(CLI::App& app, Action& action) {
  CLI::App* bench = app.add_subcommand("bench", "Measure what this machine gives a run");
  bench->require_subcommand(1);
  add_bench_nvme(*bench, action);
  add_bench_memory(*bench, action);
  add_bench_adam(*bench, action);
  add_bench_gpu(*bench, action);
  add_bench_all(*bench, action);
  add_bench_compare(*bench, action);
}

}  // namespace strata
