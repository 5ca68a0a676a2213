#pragma once
// The command line of the programs that put predictions beside measurements.

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdint>
#include <string>

namespace strata::bench {

struct AccuracyOptions {
  std::int64_t steps = 10;
  double tolerance = 0.10;
  std::string only;

  bool asks_for(const std::string& name) const { return only.empty() || name == only; }
  bool is_accurate(double predicted, double measured) const {
    return std::abs(predicted / measured - 1) <= tolerance;
  }
};

// Calls `run` with what the command line says, and returns its result.
template <typename Run>
int run_with_options(const std::string& what, int argc, char** argv, const Run& run) {
  CLI::App app(what);
  AccuracyOptions options;
  app.add_option("--steps", options.steps, "Steps of each run, the first two not counted");
  app.add_option("--tolerance", options.tolerance, "Largest relative error of a prediction");
  app.add_option("--only", options.only, "One configuration, by its name");
  CLI11_PARSE(app, argc, argv);
  return run(options);
}

}  // namespace strata::bench
