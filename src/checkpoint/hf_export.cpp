#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <system_error>

#include "config_dtype.hpp"
#include "shard_writer.hpp"
#include "staged_folder.hpp"
#include "strata/checkpoint/hf_folder.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"
#include "strata/core/plain_file.hpp"
#include "verified_file.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;

bool is_copied(const std::string& name) {
  constexpr std::array whole{"generation_config.json",
                             "tokenizer.json",
                             "tokenizer_config.json",
                             "special_tokens_map.json",
                             "added_tokens.json",
                             "tokenizer.model",
                             "vocab.json",
                             "merges.txt",
                             "chat_template.jinja",
                             "chat_template.json"};
  constexpr std::array prefixes{"LICENSE", "USE_POLICY", "NOTICE"};
  return std::ranges::find(whole, name) != whole.end() ||
         std::ranges::any_of(prefixes,
                             [&](const char* prefix) { return name.starts_with(prefix); });
}

std::vector<fs::path> files_to_copy(const fs::path& base) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(base, error)) {
    if (is_copied(entry.path().filename().string()) && entry.is_regular_file()) {
      files.push_back(entry.path());
    }
  }
  if (error) throw SystemError("list", base.string(), error.value());
  std::ranges::sort(files);
  return files;
}

void copy_bytes(const fs::path& from, const fs::path& to) {
  const PlainFile source = PlainFile::open(from);
  VerifiedFile target(to);
  std::vector<std::byte> buffer(std::min<std::uint64_t>(source.size(), 1 * MiB));
  const std::uint64_t size = source.size();
  for (std::uint64_t offset = 0; offset < size; offset += buffer.size()) {
    const auto piece =
        std::span(buffer).first(std::min<std::uint64_t>(buffer.size(), size - offset));
    source.read(offset, piece);
    target.write(offset, piece, "the copy of " + from.string());
  }
  target.finish();
}

// The base's own text unless it names another dtype.
std::string config_text(const fs::path& base, DType dtype) {
  const fs::path path = base / "config.json";
  const std::string text = read_text_file(path, config_bytes_max);
  const std::string stated = parse_hf_config(text, path.string()).dtype;
  const std::string_view wanted = hf_dtype_name(dtype);
  if (stated.empty() || stated == wanted) return text;
  std::string changed = with_config_dtype(text, wanted);
  if (parse_hf_config(changed, path.string()).dtype != wanted) {
    throw FormatError(path.string() + ": its dtype is spelled with escapes; write it plainly");
  }
  return changed;
}

std::uint64_t bytes_of(const std::vector<fs::path>& files) {
  std::uint64_t total = 0;
  for (const fs::path& file : files) total += PlainFile::open(file).size();
  return total;
}

// All that an export needs to know of its base before it writes.
struct ExportPlan {
  ExportPlan(const fs::path& base, std::span<const ExpectedTensor> tensors,
             const ExportOptions& options)
      : config(config_text(base, options.dtype)), copied(files_to_copy(base)) {
    bytes = shard_bytes_needed(tensors, options.dtype) + bytes_of(copied) + config.size() +
            options.card.size();
  }

  std::string config;
  std::vector<fs::path> copied;
  std::uint64_t bytes = 0;
};

}  // namespace

void check_export(const fs::path& base, const fs::path& target,
                  std::span<const ExpectedTensor> tensors, const ExportOptions& options) {
  check_staging(target, ExportPlan(base, tensors, options).bytes);
}

void export_hf_folder(const fs::path& base, const fs::path& target,
                      std::span<const ExpectedTensor> tensors, const TensorSource& source,
                      const ExportOptions& options) {
  const ExportPlan plan(base, tensors, options);
  StagedFolder folder(target, plan.bytes);
  WatchedBytes written(tensor_bytes(tensors, options.dtype), options.watch);
  const TensorSource watched = [&](const std::string& name, std::int64_t first, DType dtype,
                                   std::span<std::byte> bytes) {
    source(name, first, dtype, bytes);
    written.moved(bytes.size());
  };
  write_verified_text(folder.path() / "config.json", plan.config);
  for (const fs::path& file : plan.copied) copy_bytes(file, folder.path() / file.filename());
  if (!options.card.empty()) write_verified_text(folder.path() / "README.md", options.card);
  write_shards(folder.path(), tensors, options.dtype, options.shard_bytes, watched);
  folder.commit();
}

std::vector<fs::path> clear_dead_exports(const fs::path& target) {
  return clear_dead_staging(target);
}

std::vector<std::string> clear_unfinished_exports(
    const std::filesystem::path& directory,
    const std::function<bool(const std::string& target)>& is_ours) {
  std::vector<std::string> cleared;
  if (!std::filesystem::is_directory(directory)) return cleared;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    const std::string target = staged_target(name);
    if (!target.empty() && is_ours(target) && !is_being_staged(entry.path()))
      cleared.push_back(name);
  }
  std::ranges::sort(cleared);
  for (const std::string& name : cleared) std::filesystem::remove_all(directory / name);
  return cleared;
}

}  // namespace strata
