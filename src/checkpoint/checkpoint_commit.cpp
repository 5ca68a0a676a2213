#include "checkpoint_commit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "checkpoint_folders.hpp"
#include "io/common/awaited_transfer.hpp"
#include "io/store/aligned_memory.hpp"
#include "piece_coverage.hpp"
#include "piece_reader.hpp"
#include "read_back.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

template <typename Action>
void try_to(Action action) noexcept {
  try {
    action();
  } catch (const std::exception&) {
    // The error that led here is told.
  }
}

}  // namespace

CheckpointCommit::CheckpointCommit(IoEngine& engine, const std::string& directory,
                                   CheckpointManifest manifest)
    : engine_(engine),
      files_(engine.file_system()),
      directory_(directory),
      manifest_(std::move(manifest)) {}

std::uint64_t CheckpointCommit::run() {
  check_pieces();
  read_back();
  const std::uint64_t manifest_bytes = write_manifest();
  publish();
  return manifest_bytes + vector_files_bytes(manifest_.vectors);
}

std::string CheckpointCommit::path(FolderState state) const {
  return directory_ + "/" + folder_name(manifest_.note.step, state);
}

void CheckpointCommit::check_pieces() const {
  check_coverage(manifest_.vectors, manifest_.pieces);
  if (manifest_.pieces.size() > state_pieces_max)
    throw Error(fmt::format("it has {} pieces; at most {} are possible: use larger tiles",
                            manifest_.pieces.size(), state_pieces_max));
}

// What the writers have not.
void CheckpointCommit::read_back() const {
  std::vector<StatePiece> rest;
  std::ranges::copy_if(manifest_.pieces, std::back_inserter(rest),
                       [](const StatePiece& piece) { return !piece.is_read_back; });
  if (rest.empty()) return;
  const PieceReader reader(engine_, path(FolderState::partial), manifest_.vectors);
  reader.read(rest, {IoPriority::write_back}, {},
              [&](const PieceOutcome& outcome) { need_as_written(reader, outcome); });
}

// Returns its bytes.
std::uint64_t CheckpointCommit::write_manifest() {
  const std::string file = path(FolderState::partial) + "/" + std::string(checkpoint_manifest_name);
  const std::string text = checkpoint_json(manifest_);
  if (text.size() > checkpoint_json_bytes_max)
    throw Error(fmt::format("{} would have {} bytes; at most {} are possible", file, text.size(),
                            checkpoint_json_bytes_max));
  // What nobody could read is no checkpoint: said now, not when it is needed.
  parse_checkpoint_json(text, file);
  files_.write_file(file, std::as_bytes(std::span(text)));
  read_back_manifest(file, text);
  return text.size();
}

void CheckpointCommit::read_back_manifest(const std::string& path, const std::string& text) const {
  VectorFiles open_files(engine_);
  const FileId file = open_files.open(path, OpenMode::read_only, Caching::direct);
  const AlignedMemory memory(checkpoint_alignment, text.size(), "the check of checkpoint.json");
  AwaitedTransfer read;
  const IoRequest request = {.op = IoOp::read,
                             .file = file,
                             .data = memory.span().data(),
                             .bytes = text.size(),
                             .completion = &read};
  engine_.submit({&request, 1});
  const IoResult result = read.wait();
  if (!result.ok()) throw SystemError(result.message, result.error_number);
  if (!std::ranges::equal(memory.span(), std::as_bytes(std::span(text))))
    throw Error("what was written does not come back: " + path);
}

void CheckpointCommit::publish() {
  files_.sync_directory(path(FolderState::partial));
  const bool replaces = files_.exists(path(FolderState::whole));
  try {
    if (replaces) put_aside();
    files_.rename(path(FolderState::partial), path(FolderState::whole));
    files_.sync_directory(directory_);
  } catch (...) {
    take_back(replaces);
    throw;
  }
  if (replaces) try_remove_folder(files_, path(FolderState::replaced));
}

void CheckpointCommit::put_aside() {
  remove_folder_if_there(files_, path(FolderState::replaced));
  files_.rename(path(FolderState::whole), path(FolderState::replaced));
}

// Nobody can tell whether the new names would outlive a power cut: better none than one in doubt.
void CheckpointCommit::take_back(bool replaces) noexcept {
  const auto rename_if_missing = [&](FolderState from, FolderState to) {
    if (files_.exists(path(from)) && !files_.exists(path(to))) files_.rename(path(from), path(to));
  };
  try_to([&] { rename_if_missing(FolderState::whole, FolderState::partial); });
  if (replaces) try_to([&] { rename_if_missing(FolderState::replaced, FolderState::whole); });
  try_to([&] { files_.sync_directory(directory_); });
}

}  // namespace strata
