#pragma once
// A Piece is one transfer as the kernel sees it: a part of a request, at most chunk_bytes long,
// with how far it has come. advance() is the one place that reads a transfer's result: short ones
// continue, EINTR and EAGAIN are tried again, and everything else becomes an error that carries the
// facts. A piece of a request that was given up ends where it stands.
//
// Thread contract: a Piece belongs to the thread that took it; an ActiveRequest to the
// RequestBoard, under its mutex.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "io/common/open_file.hpp"
#include "strata/io/io_engine.hpp"

namespace strata {

struct ActiveRequest {
  IoRequest request;
  std::shared_ptr<OpenFile> file;  // empty when refused for want of one
  IoResult failure;                // the first failure of any piece
  std::uint64_t sequence = 0;      // order of submission
  std::uint64_t epoch = 0;         // see DrainEpochs
  std::uint64_t cut = 0;           // bytes handed out as pieces
  int in_flight = 0;               // pieces handed out and not finished
  bool queued = false;
  bool refused = false;  // by us: `failure` has the reason only, not yet the facts
  // Cancelled: pieces in flight are not tried again. Written under the mutex, read without.
  std::atomic<bool> given_up = false;
  ActiveRequest* next = nullptr;  // in the list that holds it

  bool fully_cut() const { return cut == request.bytes; }
};

struct Piece {
  ActiveRequest* active = nullptr;
  std::uint64_t start = 0;  // within the request
  std::uint64_t bytes = 0;
  std::uint64_t done = 0;
  int attempts = 0;       // in a row, without progress
  std::size_t place = 0;  // in the board's InFlightList
  IoResult failure;

  IoOp op() const { return active->request.op; }
  OpenFile& file() const { return *active->file; }
  std::uint64_t offset() const { return active->request.offset + start + done; }
  std::byte* data() const { return active->request.data + start + done; }
  std::uint64_t left() const { return bytes - done; }
};

enum class PieceStep : std::uint8_t { again, finished };

// `result` as system calls of the ring give it: bytes moved, or a negative errno.
PieceStep advance(Piece& piece, std::int64_t result);

// Ends a piece that cannot go on. `reason`: what the errno means here.
PieceStep fail(Piece& piece, int error_number, const std::string& reason);

// Sleeps a little when a piece has been refused several times in a row.
void back_off(const Piece& piece);

// "cannot read 8192 bytes at offset 4096 of /x: REASON; 3.2 GiB free on its file system"
std::string failure_message(const IoRequest& request, const OpenFile& file,
                            const std::string& reason);
std::string errno_text(int error_number);  // "Input/output error (errno 5)"

}  // namespace strata
