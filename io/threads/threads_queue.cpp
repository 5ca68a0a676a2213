#include "io/threads/threads_queue.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "io/common/posix_engine.hpp"
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

}  // namespace

ThreadsQueue::ThreadsQueue(const IoOptions& options, std::string reason, int number)
    : DeviceQueue(options.chunk_bytes, number),
      chunk_bytes_(options.chunk_bytes),
      reason_(std::move(reason)) {
  for (int thread = 0; thread < options.num_threads; ++thread) {
    threads_.emplace_back([this] { work(); });
  }
}

ThreadsQueue::~ThreadsQueue() {
  board().drain();
  board().stop();
}

void ThreadsQueue::work() {
  while (auto piece = board().wait_and_take()) {
    run_to_end(*piece);
    board().finish(*piece);
  }
}

std::string ThreadsQueue::describe() const {
  return fmt::format("threads: {} threads in pread and pwrite, pieces of {}; {}", threads_.size(),
                     format_bytes(chunk_bytes_), reason_);
}

std::unique_ptr<IoEngine> make_threads_engine(const IoOptions& options, const std::string& reason) {
  check_options(options);
  return std::make_unique<PosixEngine>("threads", options, [options, reason](int number) {
    return std::make_unique<ThreadsQueue>(options, reason, number);
  });
}

std::unique_ptr<IoEngine> make_threads_engine(const IoOptions& options) {
  return make_threads_engine(options, "asked for by name");
}

}  // namespace strata
