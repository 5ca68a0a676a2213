// Runs all that a machine with a GPU can show of a bundle: see docs/gpu-check.md. scripts/gpu-check
// calls it.

#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <exception>
#include <string_view>

#include "gpu_check/parts.hpp"

namespace strata {
namespace {

constexpr int exit_usage = 2;

double seconds_option(std::string_view text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [at, failure] = std::from_chars(text.data(), end, value);
  if (failure == std::errc() && at == end && value > 0) return value;
  throw std::invalid_argument(fmt::format("--budget {}: seconds above 0", text));
}

// Options that take a value; false: it is none of them.
bool set_option(CheckOptions& options, std::string_view name, const std::string& value) {
  if (name == "--programs")
    options.programs = value;
  else if (name == "--work")
    options.work = value;
  else if (name == "--out")
    options.out = value;
  else if (name == "--memory")
    options.memory = value;
  else if (name == "--torch-script")
    options.torch_script = value;
  else if (name == "--library-path")
    options.library_path = value;
  else if (name == "--commit")
    options.commit = value;
  else if (name == "--model")
    options.model = value;
  else if (name == "--budget")
    options.budget_seconds = seconds_option(value);
  else
    return false;
  return true;
}

CheckOptions parse(int count, char** arguments) {
  CheckOptions options;
  for (int i = 1; i < count; ++i) {
    const std::string_view name = arguments[i];
    if (name == "--quick")
      options.extent = Extent::quick;
    else if (name == "--dry-run")
      options.hides_gpus = true;
    else if (i + 1 < count && set_option(options, name, arguments[i + 1]))
      ++i;
    else
      throw std::invalid_argument(fmt::format("unknown argument '{}'", name));
  }
  for (const auto& [name, folder] : {std::pair{"--programs", options.programs},
                                     {"--work", options.work},
                                     {"--out", options.out}})
    if (!std::filesystem::is_directory(folder))
      throw std::invalid_argument(fmt::format("{} {}: no such folder", name, folder.string()));
  return options;
}

using CheckStage = void (*)(Check&);

// What goes wrong between parts ends no more than their stage.
void run_stage(Check& check, const std::string& name, CheckStage stage) try {
  stage(check);
} catch (const std::exception& error) {
  check.run_part({name}, [&](Check&) { return std::vector<CheckRow>{failed(name, error.what())}; });
}

int run(const CheckOptions& options) {
  Check check(options);
  run_stage(check, "look at the machine", check_machine);
  run_stage(check, "tests", check_tests);
  run_stage(check, "rates", check_rates);
  run_stage(check, "training", check_training);
  fmt::print("{}", format_table(check.head(), check.rows()));
  return count(check.rows(), Outcome::fail) == 0 ? 0 : 1;
}

}  // namespace
}  // namespace strata

int main(int count, char** arguments) {
  try {
    return strata::run(strata::parse(count, arguments));
  } catch (const std::exception& error) {
    fmt::print(stderr, "gpu-check: {}\n", error.what());
    return strata::exit_usage;
  }
}
