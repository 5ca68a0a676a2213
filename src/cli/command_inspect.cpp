#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <sstream>

#include "cli/command.hpp"
#include "strata/checkpoint/inspect.hpp"
#include "strata/core/error.hpp"
#include "strata/data/detokenizer.hpp"
#include "strata/data/inspect.hpp"
#include "strata/io/store/shard_store.hpp"

namespace strata {
namespace {

struct InspectArguments {
  std::string path, tokenizer;
  std::uint64_t samples = 3, seed = 42;
  bool statistics = false, verify = false;
};

std::string inspect(const InspectArguments& options) {
  const std::filesystem::path path = options.path;
  const auto statistics =
      options.statistics ? InspectStatistics::per_tensor : InspectStatistics::none;
  if (is_store(options.path))
    return inspect_store(options.path, options.verify ? Verify::reads : Verify::off);
  if (std::filesystem::is_directory(path)) return inspect_model_folder(path, statistics);
  if (path.extension() == ".safetensors") return inspect_safetensors(path, statistics);
  std::unique_ptr<Detokenizer> detokenizer;
  if (!options.tokenizer.empty()) detokenizer = load_detokenizer(options.tokenizer);
  InspectOptions shard;
  shard.samples = options.samples;
  shard.seed = options.seed;
  shard.detokenizer = detokenizer.get();
  return inspect_token_shard(path, shard);
}

// A line that says so, "FAILED   why" or "what: FAILED: why", rather than a name with that word.
bool has_failures(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("FAILED ") || line.find(": FAILED: ") != std::string::npos) return true;
  }
  return false;
}

}  // namespace

void add_inspect(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "inspect", "Show a model folder, a safetensors file, a token shard or a store, checked");
  auto options = std::make_shared<InspectArguments>();
  command
      ->add_option("path", options->path,
                   "Folder of a model or store, .safetensors file or token shard")
      ->required()
      ->check(CLI::ExistingPath);
  command->add_flag("--statistics", options->statistics,
                    "Read all weights: minimum, maximum, mean, non-finite elements");
  command->add_flag("--verify", options->verify,
                    "Read all tiles of a store that has checksums and compare them");
  command->add_option("--tokenizer", options->tokenizer,
                      "tokenizer.json (or its folder) to decode a token shard with");
  command->add_option("--samples", options->samples, "Documents of a token shard to show")
      ->capture_default_str();
  command->add_option("--seed", options->seed, "Which documents")->capture_default_str();
  command->callback([&action, options] {
    action = [options] {
      const std::string text = inspect(*options);
      fmt::print("{}", text);
      return has_failures(text) ? 1 : 0;
    };
  });
}

}  // namespace strata
