#include "gpu_check/torch_side.hpp"

#include <fmt/format.h>

namespace strata {
namespace {

namespace fs = std::filesystem;

const std::string part = "PyTorch";
constexpr double import_seconds_max = 45, script_seconds_max = 90, seconds_reserved = 60;

// Empty: it can be run.
std::string why_not(Check& check) {
  if (!check.has_gpu()) return check.facts.why_no_gpu;
  if (check.options().torch_script.empty()) return "bench/torch_gpu_step.py is not at hand";
  const ProgramEnd end = check.run_foreign(
      {"python3", "-c", "import torch; assert torch.cuda.is_available(), 'torch sees no GPU'"},
      import_seconds_max);
  return end.succeeded() ? "" : "no PyTorch with CUDA: " + complaint(end);
}

std::vector<CheckRow> run_torch(Check& check, const ModelShape& shape) {
  const std::string why = why_not(check);
  if (!why.empty()) return {not_run(part, why)};
  const fs::path model = check.scratch("torch-model"), report = check.options().out / "torch.json";
  auto make = make_model_arguments(shape, model);
  make.push_back("--shape-only");
  const ProgramEnd made = check.run("strata", make, import_seconds_max);
  if (!made.succeeded()) return {failed(part, complaint(made), made.output_tail)};
  const ProgramEnd end =
      check.run_foreign({"python3", check.options().torch_script, "--model", model, "--rows",
                         std::to_string(shape.rows), "--tokens", std::to_string(shape.row_tokens),
                         "--steps", std::to_string(steps_wanted), "--json", report},
                        script_seconds_max);
  if (!end.succeeded()) return {failed(part, complaint(end), end.output_tail)};
  const CheckJson json = CheckJson::parse(read_file(report));
  const double step = json.at("step_seconds");
  return {passed(part,
                 fmt::format("{}: step {:.4g} s, {:.0f} tok/s", shape.name, step,
                             static_cast<double>(shape.rows * shape.row_tokens) / step),
                 json)};
}

}  // namespace

double torch_seconds(const Check& check) {
  return check.has_gpu() && !check.options().torch_script.empty() ? seconds_reserved : 0;
}

void check_torch(Check& check, const ModelShape& shape) {
  check.run_part({part}, [&](Check& c) { return run_torch(c, shape); });
}

}  // namespace strata
