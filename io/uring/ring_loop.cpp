#include "io/uring/ring_loop.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

constexpr std::uint64_t bell_tag = ~std::uint64_t{0};
constexpr unsigned spare_entries = 8;  // for the bell
// Short of memory, or of room for completions, the kernel may refuse for a while; after this it is
// taken to do so for good.
constexpr int refusals_max = 5000;
constexpr auto pause_between_refusals = std::chrono::microseconds(100);
constexpr int pause_when_refused_ms = 20;
// More unregistered memory in flight costs up to 2 s of kernel time per GB.
constexpr std::uint64_t unregistered_bytes_max = 64 * MiB;

}  // namespace

RingLoop::RingLoop(RequestBoard& board, unsigned depth, std::uint64_t chunk_bytes,
                   const EventDescriptor& bell, Ring::Enter enter)
    : board_(board),
      ring_(depth + spare_entries, std::move(enter)),
      buffers_(ring_),
      chunk_bytes_(chunk_bytes),
      bell_(bell),
      slots_(depth) {
  for (std::uint64_t slot = depth; slot > 0; --slot) free_.push_back(slot - 1);
  const int num_files = ring_.has_file_table() ? static_cast<int>(Ring::num_files_max) : 0;
  for (int index = num_files; index > 0; --index) free_file_indices_.push_back(index - 1);
}

// A poll, not a read: the kernel tears a ring down in its own time and must hold no pointer of ours
// by then.
void RingLoop::listen() {
  listening_ = true;
  io_uring_sqe& entry = ring_.next_entry();
  io_uring_prep_poll_add(&entry, bell_.get(), POLLIN);
  io_uring_sqe_set_data64(&entry, bell_tag);
}

void RingLoop::turn() {
  if (!listening_) listen();
  fill();
  exchange();
}

void RingLoop::exchange() {
  const int error_number = ring_.submit_and_wait();
  if (error_number != 0 && error_number != EINTR) return refused(error_number);
  num_refusals_ = 0;
  ring_.reap([this](std::uint64_t user_data, int result) { handle(user_data, result); });
}

void RingLoop::refused(int error_number) {
  ring_.reap([this](std::uint64_t user_data, int result) { handle(user_data, result); });
  if (++num_refusals_ <= refusals_max) return std::this_thread::sleep_for(pause_between_refusals);
  fail_unaccepted(error_number);
  // A bell that only the refused ring listens to would otherwise ring for ever.
  bell_.wait_ms(pause_when_refused_ms);
  bell_.clear();
}

void RingLoop::fail_unaccepted(int error_number) {
  ring_.take_back([&](std::uint64_t user_data) {
    if (user_data == bell_tag) {
      listening_ = false;
      return;
    }
    fail(slots_[user_data].piece, error_number,
         fmt::format("io_uring_enter was refused {} times: {}", num_refusals_,
                     errno_text(error_number)));
    end(user_data);
  });
}

void RingLoop::fill() {
  while (may_take()) {
    auto piece = board_.take();
    if (!piece) return;
    begin(std::move(*piece));
  }
}

bool RingLoop::may_take() const {
  if (free_.empty()) return false;
  return unregistered_bytes_ == 0 || unregistered_bytes_ + chunk_bytes_ <= unregistered_bytes_max;
}

void RingLoop::begin(Piece piece) {
  const std::uint64_t slot = free_.back();
  free_.pop_back();
  const bool registered = buffers_.find(piece.data(), piece.bytes) >= 0;
  slots_[slot].unregistered_bytes = registered ? 0 : piece.bytes;
  unregistered_bytes_ += slots_[slot].unregistered_bytes;
  slots_[slot].piece = std::move(piece);
  issue(slot);
}

void RingLoop::issue(std::uint64_t slot) {
  const Piece& piece = slots_[slot].piece;
  auto& file = static_cast<PosixFile&>(piece.file());
  io_uring_sqe& entry = ring_.next_entry();
  prepare(entry, piece);
  const int index = file_index(file);
  entry.fd = index >= 0 ? index : file.descriptor();
  if (index >= 0) entry.flags |= IOSQE_FIXED_FILE;
  io_uring_sqe_set_data64(&entry, slot);
}

void RingLoop::prepare(io_uring_sqe& entry, const Piece& piece) const {
  const auto bytes = static_cast<unsigned>(piece.left());
  const int buffer = buffers_.find(piece.data(), piece.left());
  const bool read = piece.op() == IoOp::read;
  const int operation = buffer < 0 ? (read ? IORING_OP_READ : IORING_OP_WRITE)
                                   : (read ? IORING_OP_READ_FIXED : IORING_OP_WRITE_FIXED);
  io_uring_prep_rw(operation, &entry, -1, piece.data(), bytes, piece.offset());
  if (buffer >= 0) entry.buf_index = static_cast<std::uint16_t>(buffer);
}

int RingLoop::file_index(PosixFile& file) {
  if (file.ring_index >= 0 || free_file_indices_.empty()) return file.ring_index;
  const int index = free_file_indices_.back();
  if (ring_.set_file(static_cast<unsigned>(index), file.descriptor()) != 0) return -1;
  free_file_indices_.pop_back();
  return file.ring_index = index;
}

void RingLoop::forget(PosixFile& file) {
  if (file.ring_index < 0) return;
  ring_.set_file(static_cast<unsigned>(file.ring_index), -1);
  free_file_indices_.push_back(file.ring_index);
  file.ring_index = -1;
}

void RingLoop::handle(std::uint64_t user_data, int result) {
  if (user_data == bell_tag) {
    bell_.clear();
    listening_ = false;
    return;
  }
  Piece& piece = slots_[user_data].piece;
  if (advance(piece, result) == PieceStep::finished) return end(user_data);
  back_off(piece);
  issue(user_data);
}

void RingLoop::end(std::uint64_t slot) {
  unregistered_bytes_ -= slots_[slot].unregistered_bytes;
  board_.finish(slots_[slot].piece);
  free_.push_back(slot);
}

std::string RingLoop::describe() const {
  return fmt::format("{}, {} of {} file entries used, {}", ring_.mode(),
                     Ring::num_files_max - free_file_indices_.size(), Ring::num_files_max,
                     buffers_.describe());
}

}  // namespace strata
