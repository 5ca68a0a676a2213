#include "gpu_check/placement.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace strata {
namespace {

// What the placement leaves out is where Strata puts it by itself.
std::string offload(Placement placement) {
  switch (placement) {
    case Placement::all_resident:
      return "  weights: gpu\n  gradients: gpu\n  optimizer: gpu\n  activations: gpu\n";
    case Placement::state_in_ram:
      return "  weights: gpu\n  gradients: gpu\n  optimizer: cpu\n  activations: gpu\n";
    case Placement::state_on_nvme:
      return "  weights: gpu\n  gradients: gpu\n  optimizer: nvme\n  activations: gpu\n";
    case Placement::searched:
      return "  auto: true\n";
  }
  return "";
}

// YAML takes JSON's strings, whatever is in the path.
std::string quoted(const std::filesystem::path& path) {
  return nlohmann::json(path.string()).dump();
}

}  // namespace

const std::vector<Placement>& placements() {
  static const std::vector<Placement> all{Placement::all_resident, Placement::state_in_ram,
                                          Placement::searched, Placement::state_on_nvme};
  return all;
}

std::string title(Placement placement) {
  switch (placement) {
    case Placement::all_resident:
      return "(a) all resident";
    case Placement::state_in_ram:
      return "(b) state in RAM";
    case Placement::state_on_nvme:
      return "(c) state on NVMe";
    case Placement::searched:
      return "(d) searched";
  }
  return "";
}

std::string train_config(Placement placement, const ModelShape& shape, const RunFiles& files,
                         int steps, const std::string& device) {
  std::string text = fmt::format(
      "model_name_or_path: {}\ndataset: {}\noutput_dir: {}\nexport_dir: {}\n", quoted(files.model),
      quoted(files.shard), quoted(files.output), quoted(files.exported));
  if (!device.empty()) text += fmt::format("device: {}\n", device);
  text += fmt::format(
      "cutoff_len: {}\nper_device_train_batch_size: {}\nmax_steps: {}\nlearning_rate: 1e-4\n"
      "lr_scheduler_type: constant\nsave_strategy: \"no\"\noffload:\n",
      shape.row_tokens, shape.rows, steps);
  return text + offload(placement) + fmt::format("  nvme_paths: {}\n", quoted(files.nvme));
}

std::string training_text(const ModelShape& shape, int steps) {
  const std::int64_t bytes = shape.rows * shape.row_tokens * (steps + 2);
  std::string text, document;
  for (std::uint64_t number = 1; static_cast<std::int64_t>(text.size()) < bytes; ++number) {
    // A square's digits: regular enough to be learned, and no two documents alike.
    document += fmt::format("{} ", number * number % 99991);
    if (static_cast<std::int64_t>(document.size()) < 2 * shape.row_tokens) continue;
    text += document + "\n\n";
    document.clear();
  }
  return text + "the end\n";
}

}  // namespace strata
