#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <unordered_map>
#include <utility>

#include "checkpoint_manifest.hpp"
#include "checkpoint_names.hpp"
#include "display.hpp"
#include "piece_reader.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw FormatError(fmt::format("{}: {}", path, what));
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void check_folder(const FileSystem& files, const std::string& path) {
  const auto name = parse_folder_name(base_name(path));
  if (name && name->state != FolderState::whole)
    refuse(path, "it is what a run that ended early left behind, not a checkpoint");
  if (!files.is_directory(path)) refuse(path, "there is no such folder");
  if (!files.exists(path + "/" + std::string(checkpoint_manifest_name)))
    refuse(path, fmt::format("it is no checkpoint of Strata, or a damaged one: {} is missing",
                             checkpoint_manifest_name));
}

// A manifest that was copied into another checkpoint's folder would fit its files.
void check_step(const std::string& path, const CheckpointManifest& manifest) {
  const auto name = parse_folder_name(base_name(path));
  if (name && name->step != manifest.note.step)
    refuse(path,
           fmt::format("its {} is that of step {}", checkpoint_manifest_name, manifest.note.step));
}

void check_file(const FileSystem& files, const std::string& path, std::size_t index,
                const StateVector& vector) {
  const std::string file = path + "/" + vector_file_name(index, vector);
  if (!files.exists(file)) refuse(file, "it is missing: it should hold " + quoted_vector(vector));
  const std::uint64_t found = files.file_bytes(file), expected = vector_file_bytes(vector);
  if (found != expected)
    refuse(file, fmt::format("it has {} bytes; with {} it should have {}", found,
                             quoted_vector(vector), expected));
}

struct LoadedManifest {
  CheckpointManifest manifest;
  std::uint64_t bytes = 0;
};

LoadedManifest load_manifest(const FileSystem& files, const std::string& path) {
  check_folder(files, path);
  const std::string file = path + "/" + std::string(checkpoint_manifest_name);
  const std::string text = text_of(files.read_file(file, checkpoint_json_bytes_max));
  LoadedManifest loaded{parse_checkpoint_json(text, file), text.size()};
  check_step(path, loaded.manifest);
  for (std::size_t i = 0; i < loaded.manifest.vectors.size(); ++i)
    check_file(files, path, i, loaded.manifest.vectors[i]);
  return loaded;
}

class FolderReader final : public CheckpointReader {
 public:
  FolderReader(IoEngine& engine, const std::string& path, LoadedManifest loaded);

  const CheckpointInfo& info() const override { return info_; }
  std::optional<int> find(Role role, std::string_view block) const override;
  const std::vector<StatePiece>& pieces() const override { return pieces_; }
  void read(int vector, std::int64_t first, std::int64_t count,
            std::span<std::byte> target) const override;
  std::vector<std::string> verify(
      const std::function<void(std::uint64_t bytes)>& progress) const override;

 private:
  std::span<const StatePiece> touched(int vector, std::int64_t first, std::int64_t end) const;
  void add_strangers(std::vector<std::string>& problems) const;

  const FileSystem& files_;
  CheckpointInfo info_;
  std::vector<StatePiece> pieces_;  // by vector, then by element
  std::unordered_map<std::string, int> indices_;
  PieceReader reader_;
};

FolderReader::FolderReader(IoEngine& engine, const std::string& path, LoadedManifest loaded)
    : files_(engine.file_system()),
      info_{.path = path,
            .note = std::move(loaded.manifest.note),
            .vectors = std::move(loaded.manifest.vectors),
            .bytes = loaded.bytes,
            .strata_version = std::move(loaded.manifest.strata_version)},
      pieces_(std::move(loaded.manifest.pieces)),
      reader_(engine, path, info_.vectors) {
  info_.bytes += vector_files_bytes(info_.vectors);
  for (const StateVector& vector : info_.vectors)
    indices_.emplace(state_vector_name(vector), static_cast<int>(indices_.size()));
}

std::optional<int> FolderReader::find(Role role, std::string_view block) const {
  const auto found = indices_.find(state_vector_name({.role = role, .block = std::string(block)}));
  return found == indices_.end() ? std::nullopt : std::optional(found->second);
}

std::span<const StatePiece> FolderReader::touched(int vector, std::int64_t first,
                                                  std::int64_t end) const {
  const auto ends_before = [&](const StatePiece& piece) {
    return std::pair(piece.vector, piece.first + piece.count) <= std::pair(vector, first);
  };
  const auto begins_before = [&](const StatePiece& piece) {
    return std::pair(piece.vector, piece.first) < std::pair(vector, end);
  };
  const auto begin = std::ranges::partition_point(pieces_, ends_before);
  return {begin, std::ranges::partition_point(pieces_, begins_before)};
}

void FolderReader::read(int vector, std::int64_t first, std::int64_t count,
                        std::span<std::byte> target) const {
  ensure(vector >= 0 && static_cast<std::size_t>(vector) < info_.vectors.size() && count > 0);
  const StateVector& facts = info_.vectors[static_cast<std::size_t>(vector)];
  const std::uint64_t begin = state_vector_offset(facts, first);
  const std::uint64_t end = state_vector_offset(facts, first + count);
  ensure(target.size() >= end - begin);
  const auto copy = [&](std::uint64_t at, std::span<const std::byte> bytes) {
    const std::uint64_t from = std::max(at, begin), to = std::min(at + bytes.size(), end);
    if (from < to)
      std::memcpy(target.data() + (from - begin), bytes.data() + (from - at), to - from);
  };
  reader_.read(touched(vector, first, first + count), {IoPriority::now}, copy,
               [&](const PieceOutcome& outcome) {
                 const std::string damage = reader_.damage(outcome);
                 if (!outcome.failure.ok()) throw Error(damage);
                 if (!damage.empty()) throw FormatError(damage);
               });
}

std::vector<std::string> FolderReader::verify(
    const std::function<void(std::uint64_t bytes)>& progress) const {
  std::vector<std::string> problems;
  std::uint64_t done = 0;
  const auto add = [&](std::string problem) {
    if (!problem.empty()) problems.push_back(std::move(problem));
  };
  reader_.read(
      pieces_, {IoPriority::prefetch},
      [&](std::uint64_t, std::span<const std::byte> bytes) { done += bytes.size(); },
      [&](const PieceOutcome& outcome) {
        add(reader_.damage(outcome));
        add(reader_.disorder_behind(outcome));
        if (progress) progress(done);
      });
  add_strangers(problems);
  return problems;
}

void FolderReader::add_strangers(std::vector<std::string>& problems) const {
  std::set<std::string> expected = {std::string(checkpoint_manifest_name)};
  for (std::size_t i = 0; i < info_.vectors.size(); ++i)
    expected.insert(vector_file_name(i, info_.vectors[i]));
  for (const std::string& name : files_.list(info_.path))
    if (!expected.contains(name))
      problems.push_back(fmt::format("{}: it holds {}, which is not of the checkpoint", info_.path,
                                     quote_name(name)));
}

}  // namespace

std::unique_ptr<CheckpointReader> CheckpointReader::open(IoEngine& engine,
                                                         const std::string& path) {
  return std::make_unique<FolderReader>(engine, path, load_manifest(engine.file_system(), path));
}

}  // namespace strata
