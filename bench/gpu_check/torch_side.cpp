#include "gpu_check/torch_side.hpp"

#include <fmt/format.h>

namespace strata {
namespace {

namespace fs = std::filesystem;

// The first import reads gigabytes from a drive that has not seen them.
constexpr double import_seconds_max = 90, script_seconds_max = 90, seconds_reserved = 60;
constexpr double shape_seconds_max = 30;

// As Strata computes unless it is told to keep layers; and as PyTorch is fastest where it fits.
struct TorchVariant {
  std::string part;
  std::vector<std::string> options;
};
const std::vector<TorchVariant> variants{{"PyTorch", {"--checkpointing"}},
                                         {"PyTorch, keeping layers", {}}};
const std::vector<std::string> names{variants[0].part, variants[1].part};

// Empty: it can be run.
std::string why_not(Check& check) {
  if (!check.has_gpu()) return check.facts.why_no_gpu;
  if (check.options().torch_script.empty()) return "bench/torch_gpu_step.py is not at hand";
  const ProgramEnd end = check.run_foreign(
      {"python3", "-c", "import torch; assert torch.cuda.is_available(), 'torch sees no GPU'"},
      import_seconds_max);
  return end.succeeded() ? "" : "no PyTorch with CUDA: " + complaint(end);
}

CheckRow torch_row(const std::string& part, const std::string& model, const CheckJson& json) {
  std::string told =
      fmt::format("{}: step {:.4g} s, {:.0f} tok/s", model, json.at("step_seconds").get<double>(),
                  json.at("tokens_per_second").get<double>());
  if (json.at("peak_memory_bytes").is_number())
    told += fmt::format(", {:.1f} GB at most", json["peak_memory_bytes"].get<double>() / 1e9);
  return passed(part, told, json);
}

CheckRow run_variant(Check& check, const ModelShape& shape, const fs::path& model,
                     const TorchVariant& variant) {
  const fs::path report = check.scratch("torch.json");
  std::vector<std::string> arguments{"python3",   check.options().torch_script,
                                     "--config",  model,
                                     "--batch",   std::to_string(shape.rows),
                                     "--seq",     std::to_string(shape.row_tokens),
                                     "--steps",   std::to_string(steps_wanted - 2),
                                     "--warm-up", "2",
                                     "--json",    report};
  arguments.insert(arguments.end(), variant.options.begin(), variant.options.end());
  const ProgramEnd end = check.run_foreign(arguments, script_seconds_max);
  if (end.succeeded())
    return torch_row(variant.part, shape.name, CheckJson::parse(read_file(report)));
  const bool too_large = end.output_tail.find("does not fit") != std::string::npos;
  return too_large ? not_run(variant.part, complaint(end))
                   : failed(variant.part, complaint(end), end.output_tail);
}

std::string make_shape(Check& check, const ModelShape& shape, const fs::path& model) {
  auto arguments = make_model_arguments(shape, model);
  arguments.push_back("--shape-only");
  const ProgramEnd made = check.run("strata", arguments, shape_seconds_max);
  return made.succeeded() ? "" : complaint(made);
}

}  // namespace

double torch_seconds(const Check& check) {
  return check.has_gpu() && !check.options().torch_script.empty() ? seconds_reserved : 0;
}

void check_torch(Check& check, const ModelShape& shape) {
  const fs::path model = check.scratch("torch-model");
  std::string why;
  const auto prepare = [&](Check& c) -> std::vector<CheckRow> {
    why = why_not(c);
    if (!why.empty()) return none_run(names, why);
    why = make_shape(c, shape, model);
    if (why.empty()) return {};
    return {failed(names[0], why), failed(names[1], why)};
  };
  check.run_part(names, prepare);
  for (const TorchVariant& variant : variants)
    if (why.empty() && fs::exists(model))
      check.run_part({variant.part}, [&](Check& c) {
        return std::vector<CheckRow>{run_variant(c, shape, model, variant)};
      });
}

}  // namespace strata
