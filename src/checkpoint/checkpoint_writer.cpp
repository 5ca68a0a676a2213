#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "checkpoint_commit.hpp"
#include "checkpoint_folders.hpp"
#include "checkpoint_manifest.hpp"
#include "checkpoint_names.hpp"
#include "io/store/checksum.hpp"
#include "parallel_sync.hpp"
#include "piece_coverage.hpp"
#include "piece_reader.hpp"
#include "piece_writes.hpp"
#include "read_back.hpp"
#include "save_failure.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"
#include "vector_files.hpp"

namespace strata {
namespace {

// q8's pieces begin and end within aligned blocks, which they share with their neighbours: the page
// cache puts those together, whoever writes them.
Caching caching_of(const StateVector& vector) {
  return storage_bytes(vector.dtype, norm_chunk_elements) % checkpoint_alignment == 0
             ? Caching::direct
             : Caching::buffered;
}

void check_space(const FileSystem& files, const std::string& directory,
                 std::span<const StateVector> vectors) {
  const std::uint64_t wanted = checkpoint_bytes(vectors), free = files.free_bytes(directory);
  if (wanted <= free) return;
  throw SystemError("write a checkpoint",
                    fmt::format("in {}: it needs {} ({} bytes), {} ({} bytes) are free", directory,
                                format_bytes(wanted), wanted, format_bytes(free), free),
                    ENOSPC);
}

// What others put there (Hugging Face's folders have the same names) is not ours to replace.
void check_place(const FileSystem& files, const std::string& whole) {
  if (!files.exists(whole) || is_checkpoint_folder(files, whole)) return;
  throw ConfigError(fmt::format(
      "{} is there and is no checkpoint of Strata: move it away, or name another output_dir",
      whole));
}

class FolderWriter final : public CheckpointWriter {
 public:
  FolderWriter(IoEngine& engine, const std::string& directory, std::int64_t step,
               std::vector<StateVector> vectors, bool creates)
      : engine_(engine),
        site_{engine.file_system(), directory, step},
        vectors_(std::move(vectors)),
        creates_(creates),
        files_(engine),
        reader_(engine, path(FolderState::partial), vectors_, files_),
        writes_(engine) {
    ensure(step >= 0 && !vectors_.empty() && vectors_.size() <= state_vectors_max);
    for (const StateVector& vector : vectors_) ensure(vector.count > 0);
  }
  ~FolderWriter() override;

  void prepare();

  std::uint64_t alignment() const override { return checkpoint_alignment; }
  void write(int vector, std::int64_t first, std::int64_t count, std::span<std::byte> memory,
             IoCompletion& completion) override;
  std::vector<StatePiece> finish() override;
  void commit(const std::vector<StatePiece>& all, const RunNote& note) override;

 private:
  FileSystem& disk() { return engine_.file_system(); }
  std::string path(FolderState state) const {
    return site_.directory + "/" + folder_name(site_.step, state);
  }
  std::string vector_path(std::size_t index) const {
    return path(FolderState::partial) + "/" + vector_file_name(index, vectors_[index]);
  }
  void make_folder();
  void open_files();
  void sync_written_files();

  IoEngine& engine_;
  const SaveSite site_;
  const std::vector<StateVector> vectors_;
  const bool creates_;
  bool is_finished_ = false;
  bool is_committed_ = false;
  VectorFiles files_;
  std::mutex mutex_;
  std::vector<StatePiece> pieces_;  // guarded by mutex_
  const PieceReader reader_;
  std::optional<ReadBack> read_back_;
  PieceWrites writes_;
};

FolderWriter::~FolderWriter() {
  writes_.wait();
  read_back_.reset();
  files_.close();
  if (creates_ && !is_committed_) try_remove_folder(disk(), path(FolderState::partial));
}

void FolderWriter::prepare() {
  if (creates_) make_folder();
  open_files();
  read_back_.emplace(reader_);
}

void FolderWriter::make_folder() {
  check_place(disk(), path(FolderState::whole));
  remove_folder_if_there(disk(), path(FolderState::partial));
  check_space(disk(), site_.directory, vectors_);
  disk().make_directory(path(FolderState::partial));
}

void FolderWriter::open_files() {
  for (std::size_t i = 0; i < vectors_.size(); ++i) {
    if (!creates_ && !disk().exists(vector_path(i)))
      throw Error(
          fmt::format("{} is missing: the process that makes the checkpoint's files has "
                      "not, or not on a file system that this one shares",
                      vector_path(i)));
    const FileId file =
        files_.open(vector_path(i), OpenMode::read_write_create, caching_of(vectors_[i]));
    if (creates_) engine_.preallocate(file, vector_file_bytes(vectors_[i]));
  }
}

void FolderWriter::write(int vector, std::int64_t first, std::int64_t count,
                         std::span<std::byte> memory, IoCompletion& completion) {
  ensure(!is_finished_ && vector >= 0 && static_cast<std::size_t>(vector) < vectors_.size());
  const StateVector& facts = vectors_[static_cast<std::size_t>(vector)];
  const std::uint64_t begin = state_vector_offset(facts, first);
  const std::uint64_t own = state_vector_offset(facts, first + count) - begin;
  const std::uint64_t end = first + count == facts.count ? vector_file_bytes(facts) : begin + own;
  ensure(count > 0 && memory.size() >= end - begin);
  std::ranges::fill(memory.subspan(own, end - begin - own), std::byte{0});
  const std::uint64_t hash = checksum(memory.first(own));
  const bool is_read_back = caching_of(facts) == Caching::direct;
  const StatePiece piece = {vector, first, count, hash, is_read_back};
  {
    const std::lock_guard lock(mutex_);
    pieces_.push_back(piece);
  }
  writes_.start({.op = IoOp::write,
                 .file = files_.file(vector),
                 .offset = begin,
                 .data = memory.data(),
                 .bytes = end - begin,
                 .priority = IoPriority::write_back,
                 .completion = &completion},
                piece, is_read_back ? &*read_back_ : nullptr);
}

std::vector<StatePiece> FolderWriter::finish() {
  return or_not_saved(site_, [&] {
    const IoResult result = writes_.wait();
    is_finished_ = true;
    if (!result.ok()) throw SystemError(result.message, result.error_number);
    sync_written_files();
    read_back_->finish();
    read_back_.reset();
    files_.close();
    return sorted_pieces(pieces_);
  });
}

void FolderWriter::sync_written_files() {
  std::set<int> vectors;
  for (const StatePiece& piece : pieces_) vectors.insert(piece.vector);
  std::vector<FileId> files;
  for (const int vector : vectors) files.push_back(files_.file(vector));
  sync_files(engine_, files);
}

void FolderWriter::commit(const std::vector<StatePiece>& all, const RunNote& note) {
  ensure(creates_ && is_finished_ && !is_committed_ && note.step == site_.step);
  or_not_saved(site_, [&] {
    CheckpointCommit commit(engine_, site_.directory,
                            {.strata_version = STRATA_VERSION,
                             .note = note,
                             .vectors = vectors_,
                             .pieces = sorted_pieces(all)});
    commit.run();
    is_committed_ = true;
  });
}

}  // namespace

std::unique_ptr<CheckpointWriter> CheckpointWriter::open(IoEngine& engine,
                                                         const std::string& directory,
                                                         std::int64_t step,
                                                         std::vector<StateVector> vectors,
                                                         bool creates) {
  auto writer =
      std::make_unique<FolderWriter>(engine, directory, step, std::move(vectors), creates);
  or_not_saved({engine.file_system(), directory, step}, [&] { writer->prepare(); });
  return writer;
}

}  // namespace strata
