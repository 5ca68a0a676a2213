#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "cli/byte_progress.hpp"
#include "cli/command.hpp"
#include "cli/weight_dtype.hpp"
#include "strata/checkpoint/hf_folder.hpp"
#include "strata/checkpoint/llama_tensors.hpp"
#include "strata/core/bytes.hpp"

namespace strata {
namespace {

struct ExportArguments {
  std::string model, output, dtype = "bf16", shard_size = "5GB";
};

int export_folder(const ExportArguments& options) {
  const std::vector<ExpectedTensor> tensors = llama_tensors(read_hf_config(options.model));
  const HfWeights weights(options.model, tensors);
  std::vector<float> buffer;
  const TensorSource source = [&](const std::string& name, std::int64_t first, DType dtype,
                                  std::span<std::byte> target) {
    buffer.resize(target.size() / static_cast<std::size_t>(dtype_bytes(dtype)));
    weights.read_f32(name, first, buffer);
    if (dtype == DType::f32) {
      std::memcpy(target.data(), buffer.data(), target.size());
    } else {
      auto* out = reinterpret_cast<bfloat16*>(target.data());
      std::ranges::transform(buffer, out, weight_to_bfloat16);
    }
  };
  ByteProgress progress("exporting", "weights");
  ExportOptions export_options;
  export_options.dtype = parse_weight_dtype(options.dtype);
  export_options.shard_bytes = parse_bytes(options.shard_size);
  export_options.watch = progress.watch();
  export_hf_folder(options.model, options.output, tensors, source, export_options);
  fmt::print("exported {}: {}\n", options.output, progress.finish());
  return 0;
}

}  // namespace

void add_export(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "export", "Write a model folder anew, checked, in another dtype or shard size");
  auto options = std::make_shared<ExportArguments>();
  command->add_option("--model", options->model, "Hugging Face folder to read")
      ->required()
      ->check(CLI::ExistingDirectory);
  command->add_option("--output", options->output, "Folder to write; must not exist")->required();
  command->add_option("--dtype", options->dtype, "bf16 or fp32")->capture_default_str();
  command->add_option("--shard-size", options->shard_size, "Most bytes per file")
      ->capture_default_str();
  command->callback([&action, options] { action = [options] { return export_folder(*options); }; });
}

}  // namespace strata
