#include "io/threads/threads_engine.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "io/common/posix_file.hpp"
#include "io/common/request_check.hpp"
#include "strata/core/bytes.hpp"

namespace strata {
namespace {

std::int64_t move_bytes(const Piece& piece) {
  const int descriptor = static_cast<PosixFile&>(piece.file()).descriptor();
  const auto offset = static_cast<off_t>(piece.offset());
  const ssize_t moved = piece.op() == IoOp::read
                            ? ::pread(descriptor, piece.data(), piece.left(), offset)
                            : ::pwrite(descriptor, piece.data(), piece.left(), offset);
  return moved < 0 ? -errno : moved;
}

void run_to_end(Piece& piece) {
  while (advance(piece, move_bytes(piece)) == PieceStep::again) back_off(piece);
}

IoOptions checked(const IoOptions& options) {
  check_options(options);
  return options;
}

}  // namespace

ThreadsEngine::ThreadsEngine(const IoOptions& options, std::string reason)
    : options_(checked(options)), reason_(std::move(reason)), board_(options.chunk_bytes) {
  for (int thread = 0; thread < options.num_threads; ++thread) {
    threads_.emplace_back([this] { work(); });
  }
}

ThreadsEngine::~ThreadsEngine() {
  board_.drain();
  board_.stop();
}

void ThreadsEngine::work() {
  while (auto piece = board_.wait_and_take()) {
    run_to_end(*piece);
    board_.finish(*piece);
  }
}

FileId ThreadsEngine::open(const std::string& path, OpenMode mode, Caching caching) {
  return board_.add_file(std::make_shared<PosixFile>(path, mode, caching));
}

std::string ThreadsEngine::describe() const {
  return fmt::format("threads: {} threads in pread and pwrite, pieces of {}; {}",
                     options_.num_threads, format_bytes(options_.chunk_bytes), reason_);
}

std::unique_ptr<IoEngine> make_threads_engine(const IoOptions& options) {
  return std::make_unique<ThreadsEngine>(options, "asked for by name");
}

}  // namespace strata
