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
#include "piece_writes.hpp"
#include "read_back.hpp"
#include "save_failure.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"
#include "vector_files.hpp"

namespace strata {
namespace {

// The largest pages that machines have: what the page cache writes for one piece touches no other
// outside of them.
constexpr std::uint64_t page_bytes_max = 64 * KiB;

// q8's pieces may begin and end within blocks, which they share with their neighbours: the page
// cache puts those together, whoever writes them.
bool may_share_blocks(const StateVector& vector) {
  return storage_bytes(vector.dtype, norm_chunk_elements) % checkpoint_alignment != 0;
}

// Where a piece goes in its vector's file.
struct PieceExtent {
  std::uint64_t begin = 0, own = 0, end = 0;  // with the zeros behind a vector's end
  Caching caching = Caching::direct;
};

PieceExtent extent_of(const StateVector& vector, std::int64_t first, std::int64_t count) {
  const std::uint64_t begin = state_vector_offset(vector, first);
  const std::uint64_t own = state_vector_offset(vector, first + count) - begin;
  const bool is_last = first + count == vector.count;
  const bool is_apart = begin % page_bytes_max == 0 && (is_last || own % page_bytes_max == 0);
  return {.begin = begin,
          .own = own,
          .end = is_last ? vector_file_bytes(vector) : begin + own,
          .caching = may_share_blocks(vector) && !is_apart ? Caching::buffered : Caching::direct};
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

// Who asked for it learns from finish() what has failed.
void drop(IoCompletion& completion) {
  completion.complete({0, ECANCELED, "a piece of a checkpoint that has failed was not written"});
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
        cached_files_(engine),
        writes_(engine) {
    ensure(step >= 0 && !vectors_.empty() && vectors_.size() <= state_vectors_max);
    for (const StateVector& vector : vectors_) ensure(vector.count > 0);
  }
  ~FolderWriter() override;

  void prepare();

  std::uint64_t alignment() const override { return checkpoint_alignment; }
  void write(int vector, std::int64_t first, std::int64_t count, std::span<std::byte> memory,
             IoCompletion& completion) override;
  bool has_failed() const override { return writes_.has_failed() || read_back_->has_failed(); }
  std::vector<StatePiece> finish() override;
  std::uint64_t commit(const std::vector<StatePiece>& all, const RunNote& note) override;

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
  void open_file(std::size_t index);
  void close_files();
  void sync_written_files();

  IoEngine& engine_;
  const SaveSite site_;
  const std::vector<StateVector> vectors_;
  const bool creates_;
  bool is_finished_ = false;
  bool is_committed_ = false;
  VectorFiles files_;
  VectorFiles cached_files_;
  std::vector<FileId> cached_;  // by vector, where pieces may share blocks
  std::mutex mutex_;
  std::vector<StatePiece> pieces_;  // guarded by mutex_
  std::optional<ReadBack> read_back_;
  PieceWrites writes_;
};

FolderWriter::~FolderWriter() {
  writes_.wait();
  read_back_.reset();
  close_files();
  if (creates_ && !is_committed_) try_remove_folder(disk(), path(FolderState::partial));
}

void FolderWriter::prepare() {
  if (creates_) make_folder();
  open_files();
  read_back_.emplace(engine_, path(FolderState::partial), vectors_, files_);
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
    open_file(i);
  }
}

void FolderWriter::open_file(std::size_t index) {
  const std::string path = vector_path(index);
  const FileId file = files_.open(path, OpenMode::read_write_create, Caching::direct);
  if (creates_) engine_.preallocate(file, vector_file_bytes(vectors_[index]));
  cached_.push_back(may_share_blocks(vectors_[index])
                        ? cached_files_.open(path, OpenMode::read_write_create, Caching::buffered)
                        : file);
}

void FolderWriter::close_files() {
  cached_files_.close();
  files_.close();
}

void FolderWriter::write(int vector, std::int64_t first, std::int64_t count,
                         std::span<std::byte> memory, IoCompletion& completion) {
  ensure(!is_finished_ && vector >= 0 && static_cast<std::size_t>(vector) < vectors_.size());
  if (has_failed()) return drop(completion);
  const StateVector& facts = vectors_[static_cast<std::size_t>(vector)];
  const PieceExtent extent = extent_of(facts, first, count);
  const std::uint64_t bytes = extent.end - extent.begin;
  ensure(count > 0 && memory.size() >= bytes);
  std::ranges::fill(memory.first(bytes).subspan(extent.own), std::byte{0});
  const bool is_direct = extent.caching == Caching::direct;
  const StatePiece piece = {vector, first, count, checksum(memory.first(extent.own)), is_direct};
  {
    const std::lock_guard lock(mutex_);
    pieces_.push_back(piece);
  }
  writes_.start(
      {.op = IoOp::write,
       .file = is_direct ? files_.file(vector) : cached_[static_cast<std::size_t>(vector)],
       .offset = extent.begin,
       .data = memory.data(),
       .bytes = bytes,
       .priority = IoPriority::write_back,
       .completion = &completion},
      piece, is_direct ? &*read_back_ : nullptr);
}

std::vector<StatePiece> FolderWriter::finish() {
  return or_not_saved(site_, [&] {
    const IoResult result = writes_.wait();
    is_finished_ = true;
    if (!result.ok()) throw SystemError(result.message, result.error_number);
    read_back_->check();
    sync_written_files();
    read_back_->finish();
    read_back_.reset();
    close_files();
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

std::uint64_t FolderWriter::commit(const std::vector<StatePiece>& all, const RunNote& note) {
  ensure(creates_ && is_finished_ && !is_committed_ && note.step == site_.step);
  return or_not_saved(site_, [&] {
    CheckpointCommit commit(engine_, site_.directory,
                            {.strata_version = STRATA_VERSION,
                             .note = note,
                             .vectors = vectors_,
                             .pieces = sorted_pieces(all)});
    const std::uint64_t bytes = commit.run();
    is_committed_ = true;
    return bytes;
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
