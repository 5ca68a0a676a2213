#include "io/common/piece.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>

#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

// A device that refuses for a second on end is broken: an error is better than a hang.
constexpr int attempts_max = 10000;
constexpr int attempts_at_once = 16;
constexpr auto pause = std::chrono::microseconds(100);

PieceStep fail_at_end(Piece& piece) {
  return fail(piece, ENODATA, fmt::format("the file ends at byte {}", piece.file().size()));
}

PieceStep try_again(Piece& piece, int error_number) {
  if (++piece.attempts <= attempts_max) return PieceStep::again;
  return fail(
      piece, error_number,
      fmt::format("no progress in {} attempts: {}", piece.attempts, errno_text(error_number)));
}

PieceStep nothing_moved(Piece& piece) {
  if (piece.op() == IoOp::read && piece.offset() >= piece.file().size()) return fail_at_end(piece);
  return try_again(piece, EIO);
}

PieceStep continue_short(Piece& piece, std::uint64_t moved) {
  const std::uint64_t end = piece.offset() + moved;
  if (piece.op() == IoOp::read && end >= piece.file().size()) return fail_at_end(piece);
  // A direct transfer can only continue from an aligned byte: the odd tail is moved again.
  const std::uint64_t alignment = piece.file().alignment();
  const std::uint64_t kept = (piece.done + moved) / alignment * alignment;
  if (kept == piece.done) return try_again(piece, EIO);
  piece.done = kept;
  piece.attempts = 0;
  return PieceStep::again;
}

PieceStep judge(Piece& piece, std::int64_t result) {
  if (result == -EINTR || result == -EAGAIN) return try_again(piece, static_cast<int>(-result));
  if (result < 0) {
    return fail(piece, static_cast<int>(-result), errno_text(static_cast<int>(-result)));
  }
  const auto moved = static_cast<std::uint64_t>(result);
  ensure(moved <= piece.left());
  if (moved == 0) return nothing_moved(piece);
  if (moved < piece.left()) return continue_short(piece, moved);
  piece.done = piece.bytes;
  return PieceStep::finished;
}

}  // namespace

PieceStep fail(Piece& piece, int error_number, const std::string& reason) {
  const std::string place = piece.offset() == piece.active->request.offset
                                ? reason
                                : fmt::format("{} bytes in: {}", piece.start + piece.done, reason);
  piece.failure = {0, error_number, failure_message(piece.active->request, piece.file(), place)};
  return PieceStep::finished;
}

PieceStep advance(Piece& piece, std::int64_t result) {
  const PieceStep step = judge(piece, result);
  // The board has put ECANCELED down already; the piece only has to end.
  return piece.active->given_up ? PieceStep::finished : step;
}

void back_off(const Piece& piece) {
  if (piece.attempts > attempts_at_once) std::this_thread::sleep_for(pause);
}

std::string errno_text(int error_number) {
  return fmt::format("{} (errno {})", std::generic_category().message(error_number), error_number);
}

std::string failure_message(const IoRequest& request, const OpenFile& file,
                            const std::string& reason) {
  return fmt::format("cannot {} {} bytes at offset {} of {}: {}; {} free on its file system",
                     request.op == IoOp::read ? "read" : "write", request.bytes, request.offset,
                     file.path(), reason, format_bytes(file.bytes_free()));
}

}  // namespace strata
