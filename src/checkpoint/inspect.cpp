#include "strata/checkpoint/inspect.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <system_error>

#include "display.hpp"
#include "hf_shards.hpp"
#include "strata/checkpoint/llama_tensors.hpp"
#include "strata/checkpoint/safetensors.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"
#include "tensor_table.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;

std::string rope_summary(const HfConfig& config) {
  std::string text = fmt::format("{}, theta {}", config.rope_type, config.rope_theta);
  if (config.rope_type == "default") return text;
  text += fmt::format(", factor {}", config.rope_factor);
  if (config.rope_type == "llama3")
    text +=
        fmt::format(", low {}, high {}", config.rope_low_freq_factor, config.rope_high_freq_factor);
  if (config.rope_type == "yarn")
    text += fmt::format(", beta {} to {}, attention factor {:.4g}", config.rope_beta_fast,
                        config.rope_beta_slow, config.rope_attention_factor);
  if (config.rope_type != "linear")
    text += fmt::format(", original positions {}", config.rope_original_max_positions);
  return text;
}

std::string config_summary(const HfConfig& config) {
  const std::string window =
      config.sliding_window > 0 ? fmt::format(" (window {})", config.sliding_window) : "";
  const std::int64_t parameters = num_parameters(config);
  return fmt::format(
      "class       {}\n"
      "parameters  {} ({:.4g} billion)\n"
      "layers      {}, hidden {}, ffn {}\n"
      "heads       {} query, {} key-value, head_dim {}\n"
      "vocabulary  {}, {} head\n"
      "positions   {}{}, rope {}\n"
      "dtype       {}\n",
      config.architecture, parameters, static_cast<double>(parameters) * 1e-9,
      config.num_hidden_layers, config.hidden_size, config.intermediate_size,
      config.num_attention_heads, config.num_key_value_heads, config.head_dim, config.vocab_size,
      config.tie_word_embeddings ? "tied" : "untied", config.max_position_embeddings, window,
      rope_summary(config),
      config.dtype.empty() ? std::string("not stated") : quote_name(config.dtype));
}

std::string file_table(const fs::path& folder) {
  std::vector<fs::directory_entry> entries;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) entries.push_back(entry);
  if (error) throw SystemError("list", folder.string(), error.value());
  std::ranges::sort(entries);
  TextTable table({{"file"}, {"size", TextTable::Align::right}});
  for (const auto& entry : entries) {
    std::error_code unknown;
    const bool is_file = entry.is_regular_file(unknown);
    table.add_row(
        {entry.path().filename().string(), is_file ? format_bytes(entry.file_size(unknown)) : "-"});
  }
  return table.text();
}

// Runs checks one after the other and writes down how each went; a failure does not stop the rest.
class Checks {
 public:
  void run(const std::string& what, const std::function<void()>& check) {
    try {
      check();
      text_ += fmt::format("{}: ok\n", what);
    } catch (const Error& error) {
      text_ += fmt::format("{}: FAILED: {}\n", what, error.what());
    }
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

class FolderInspection {
 public:
  FolderInspection(const fs::path& folder, InspectStatistics statistics)
      : folder_(folder), statistics_(statistics), table_(statistics) {}

  std::string text() {
    checks_.run("config.json", [this] { config_ = read_hf_config(folder_); });
    checks_.run("safetensors files and index", [this] { list_tensors(); });
    if (config_) checks_.run("tensors match config.json", [this] { match(); });
    if (statistics_ == InspectStatistics::per_tensor) {
      checks_.run("all elements finite", [this] { check_finite(); });
    }
    const std::string summary = config_ ? config_summary(*config_) + "\n" : "";
    return fmt::format("{}\n\n{}{}\n{}\n{}", folder_.string(), summary, file_table(folder_),
                       table_.text(), checks_.text());
  }

 private:
  void list_tensors() {
    for (const SafetensorsReader& shard : open_hf_shards(folder_)) table_.add(shard);
  }

  void match() const { HfWeights(folder_, llama_tensors(*config_)); }

  void check_finite() const {
    if (table_.num_non_finite() == 0) return;
    throw FormatError(fmt::format("{} elements are NaN or infinite", table_.num_non_finite()));
  }

  const fs::path& folder_;
  InspectStatistics statistics_;
  TensorTable table_;
  Checks checks_;
  std::optional<HfConfig> config_;
};

}  // namespace

std::string inspect_safetensors(const fs::path& path, InspectStatistics statistics) {
  const SafetensorsReader reader(path);
  TensorTable table(statistics);
  table.add(reader);
  std::string text = path.string() + "\n";
  for (const auto& [key, value] : reader.metadata()) {
    text += fmt::format("metadata {}: {}\n", quote_name(key), quote_name(value));
  }
  return text + "\n" + table.text();
}

std::string inspect_model_folder(const fs::path& folder, InspectStatistics statistics) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) throw ConfigError(folder.string() + " is no folder");
  return FolderInspection(folder, statistics).text();
}

}  // namespace strata
