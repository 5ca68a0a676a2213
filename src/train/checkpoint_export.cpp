#include "strata/train/checkpoint_export.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "strata/core/error.hpp"
#include "strata/train/planned_run.hpp"
#include "train/weight_elements.hpp"

namespace strata {
namespace {

// The model of a folder, over kernels that compute nothing here.
struct ExportedModel {
  explicit ExportedModel(const std::filesystem::path& folder)
      : kernels(make_cpu_kernels({.num_threads = 1})),
        model(make_llama(llama_config(read_hf_config(folder)), {DType::bf16, 1, 0, 1}, *kernels)) {}

  std::unique_ptr<Kernels> kernels;
  std::unique_ptr<Model> model;
};

// Elements of named parameters out of the masters; keeps the chunks read last.
class MasterSource {
 public:
  MasterSource(const CheckpointReader& checkpoint, const Model& model) : checkpoint_(checkpoint) {
    for (const BlockSpec& block : model.blocks()) {
      const auto vector = checkpoint.find(Role::master, block.name);
      if (!vector)
        throw ConfigError(fmt::format("{} has no master of '{}': it is of another model",
                                      checkpoint.info().path, block.name));
      for (const ParameterSpec& p : block.parameters) {
        check_fits(*vector, block, p);
        places_[p.name] = {*vector, p.offset};
      }
    }
  }

  void read(const std::string& name, std::int64_t first, DType dtype, std::span<std::byte> target) {
    const Place& place = places_.at(name);
    std::int64_t begin = place.offset + first;
    auto left = static_cast<std::int64_t>(target.size()) / dtype_bytes(dtype);
    std::byte* out = target.data();
    while (left > 0) {
      const std::span<const float> held = chunk_at(place.vector, begin);
      const std::int64_t count = std::min(left, std::ssize(held));
      store_elements(held.first(static_cast<std::size_t>(count)), dtype, out);
      out += count * dtype_bytes(dtype);
      begin += count;
      left -= count;
    }
  }

 private:
  struct Place {
    int vector;
    std::int64_t offset;
  };
  static constexpr std::int64_t chunk_elements = 256 * norm_chunk_elements;

  void check_fits(int vector, const BlockSpec& block, const ParameterSpec& p) const {
    const StateVector& whole = checkpoint_.info().vectors[static_cast<std::size_t>(vector)];
    if (whole.dtype == DType::f32 && p.offset + p.count() <= whole.count) return;
    throw ConfigError(fmt::format("{}: master of '{}' does not hold '{}': it is of another model",
                                  checkpoint_.info().path, block.name, p.name));
  }

  // The held elements from `begin` on.
  std::span<const float> chunk_at(int vector, std::int64_t begin) {
    const std::int64_t chunk = begin / chunk_elements * chunk_elements;
    if (vector != held_vector_ || chunk != held_begin_) {
      const std::int64_t end = checkpoint_.info().vectors[static_cast<std::size_t>(vector)].count;
      held_.resize(static_cast<std::size_t>(std::min(chunk_elements, end - chunk)));
      checkpoint_.read(vector, chunk, std::ssize(held_), std::as_writable_bytes(std::span(held_)));
      held_vector_ = vector;
      held_begin_ = chunk;
    }
    return std::span<const float>(held_).subspan(static_cast<std::size_t>(begin - chunk));
  }

  const CheckpointReader& checkpoint_;
  std::map<std::string, Place> places_;
  std::vector<float> held_;
  int held_vector_ = -1;
  std::int64_t held_begin_ = -1;
};

}  // namespace

std::filesystem::path model_folder_of(const CheckpointReader& checkpoint) {
  const std::string key = "model_name_or_path: ";
  const std::string& config = checkpoint.info().note.config;
  const std::size_t at = config.find(key);
  if (at == std::string::npos)
    throw ConfigError(fmt::format("{} does not say which model folder it began with: give --model",
                                  checkpoint.info().path));
  std::string name = config.substr(at + key.size(), config.find('\n', at) - at - key.size());
  std::erase(name, '"');
  return name;
}

void export_checkpoint(const CheckpointReader& checkpoint, const std::filesystem::path& base,
                       const std::filesystem::path& target, DType dtype, const ByteWatch& watch) {
  const ExportedModel exported(base);
  MasterSource source(checkpoint, *exported.model);
  ExportOptions options;
  options.dtype = dtype;
  options.card = fmt::format(
      "# {}\n\nFine-tuned with Strata from the weights in `{}`: its checkpoint after step {}.\n",
      base.filename().string(), base.filename().string(), checkpoint.info().note.step);
  options.watch = watch;
  export_hf_folder(
      base, target, expected_tensors(*exported.model),
      [&](const std::string& name, std::int64_t first, DType type, std::span<std::byte> bytes) {
        source.read(name, first, type, bytes);
      },
      options);
}

}  // namespace strata
