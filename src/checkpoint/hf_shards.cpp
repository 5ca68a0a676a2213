#include "hf_shards.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <system_error>

#include "display.hpp"
#include "json_fields.hpp"
#include "name_list.hpp"
#include "safetensors_header.hpp"
#include "strata/core/error.hpp"
#include "strata/core/plain_file.hpp"
#include "strict_json.hpp"

namespace strata {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr const char* single_name = "model.safetensors";
constexpr const char* index_name = "model.safetensors.index.json";
constexpr std::size_t files_max = 10'000;

using WeightMap = std::map<std::string, std::string>;  // tensor to file

// A plain name of a file in the folder itself: nothing in an index may lead elsewhere.
bool is_plain_file_name(const std::string& name) {
  const auto is_plain = [](char c) { return c != '/' && c != '\\' && (c < 0 || c >= ' '); };
  return name.ends_with(".safetensors") && !name.starts_with('.') &&
         std::ranges::all_of(name, is_plain);
}

bool exists(const fs::path& folder, const std::string& file) {
  std::error_code ignored;  // a name that the file system refuses does not exist
  return fs::exists(folder / file, ignored);
}

WeightMap parse_weight_map(const std::string& text, const std::string& source) {
  const json document = parse_strict_json(text, source);
  const JsonFields root(document, source);
  const json* map = root.find("weight_map");
  if (map == nullptr || !map->is_object()) root.bad_format("'weight_map' is no object");
  WeightMap result;
  for (const auto& [tensor, file] : map->items()) {
    if (!file.is_string()) {
      root.bad_format(fmt::format("the file of tensor {} is no text", quote_name(tensor)));
    }
    if (!is_plain_file_name(file.get_ref<const std::string&>())) {
      root.bad_format(fmt::format("tensor {} is in {}, which is no plain *.safetensors file name",
                                  quote_name(tensor),
                                  quote_name(file.get_ref<const std::string&>())));
    }
    result.emplace(tensor, file.get<std::string>());
  }
  return result;
}

std::set<std::string> files_of(const WeightMap& map, const std::string& source) {
  std::set<std::string> files;
  for (const auto& [tensor, file] : map) files.insert(file);
  if (files.empty()) throw FormatError(source + ": the weight_map is empty");
  if (files.size() > files_max) {
    throw FormatError(fmt::format("{}: names {} files; at most {} are accepted", source,
                                  files.size(), files_max));
  }
  return files;
}

void check_present(const fs::path& folder, const std::set<std::string>& files,
                   const std::string& source) {
  NameList absent;
  for (const std::string& file : files) {
    if (!exists(folder, file)) absent.add(file);
  }
  if (absent.count() > 0) {
    throw FormatError(fmt::format("{} names files that are absent: {}; fetch the folder again",
                                  source, absent.text()));
  }
}

// Every tensor of a file must be the index's, in that file and in no other.
void check_against_map(const SafetensorsReader& shard, const WeightMap& map,
                       const std::string& source) {
  const std::string file = shard.path().filename().string();
  for (const TensorEntry& tensor : shard.tensors()) {
    const auto mapped = map.find(tensor.name);
    if (mapped == map.end()) {
      throw FormatError(fmt::format("{} does not name tensor {}, which is in {}", source,
                                    quote_name(tensor.name), file));
    }
    if (mapped->second != file) {
      throw FormatError(fmt::format("tensor {} is in {}, but {} says it is in {}",
                                    quote_name(tensor.name), shard.path().string(), source,
                                    mapped->second));
    }
  }
}

void check_complete(const std::vector<SafetensorsReader>& shards, const WeightMap& map,
                    const std::string& source) {
  std::set<std::string_view> held;
  for (const SafetensorsReader& shard : shards) {
    for (const TensorEntry& tensor : shard.tensors()) held.insert(tensor.name);
  }
  NameList lacking;
  for (const auto& [tensor, file] : map) {
    if (!held.contains(tensor)) lacking.add(fmt::format("{} ({})", quote_name(tensor), file));
  }
  if (lacking.count() > 0) {
    throw FormatError(
        fmt::format("{} names tensors that their files lack: {}", source, lacking.text()));
  }
}

std::vector<SafetensorsReader> open_indexed(const fs::path& folder) {
  const std::string source = (folder / index_name).string();
  const WeightMap map =
      parse_weight_map(read_text_file(source, safetensors_header_bytes_max), source);
  const std::set<std::string> files = files_of(map, source);
  if (exists(folder, single_name) && !files.contains(single_name)) {
    throw ConfigError(
        fmt::format("{} holds both {} and an index of other files; remove one of them",
                    folder.string(), single_name));
  }
  check_present(folder, files, source);
  std::vector<SafetensorsReader> shards;
  for (const std::string& file : files) {
    shards.emplace_back(folder / file);
    check_against_map(shards.back(), map, source);
  }
  check_complete(shards, map, source);
  return shards;
}

bool holds_pickles(const fs::path& folder) {
  return exists(folder, "pytorch_model.bin") || exists(folder, "pytorch_model.bin.index.json");
}

}  // namespace

std::vector<SafetensorsReader> open_hf_shards(const fs::path& folder) {
  if (exists(folder, index_name)) return open_indexed(folder);
  std::vector<SafetensorsReader> shards;
  if (exists(folder, single_name)) {
    shards.emplace_back(folder / single_name);
    return shards;
  }
  throw ConfigError(fmt::format(
      "{} holds neither {} nor {}{}", folder.string(), single_name, index_name,
      holds_pickles(folder) ? "; its pytorch_model.bin is not read: save it as safetensors" : ""));
}

}  // namespace strata
