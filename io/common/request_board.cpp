#include "io/common/request_board.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "io/common/request_check.hpp"
#include "strata/core/clock.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

constexpr int nodes_reserved = 512;  // more than the slots of any sensible plan can keep in flight

}  // namespace

RequestBoard::RequestBoard(std::uint64_t chunk_bytes, int queue)
    : chunk_bytes_(chunk_bytes), files_(queue), in_flight_(nodes_reserved) {
  for (int i = 0; i < nodes_reserved; ++i) give_back(nodes_.emplace_back());
}

FileId RequestBoard::add_file(std::shared_ptr<OpenFile> file) {
  const Lock lock(mutex_);
  return files_.add(std::move(file));
}

std::shared_ptr<OpenFile> RequestBoard::file(FileId id) const {
  const Lock lock(mutex_);
  const auto* found = files_.find(id);
  if (found == nullptr) throw SystemError("use", fmt::format("I/O file {}", id.value), EBADF);
  return *found;
}

std::shared_ptr<OpenFile> RequestBoard::remove_file(FileId id) {
  Lock lock(mutex_);
  const auto* found = files_.find(id);
  if (found == nullptr) throw SystemError("close", fmt::format("I/O file {}", id.value), EBADF);
  const std::shared_ptr<OpenFile> removed = *found;
  files_.remove(id);
  settled_.wait(lock, [&] { return removed->pending == 0; });
  return removed;
}

void RequestBoard::submit(std::span<const IoRequest> requests) {
  {
    const Lock lock(mutex_);
    for (const IoRequest& request : requests) enqueue(request);
  }
  work_.notify_all();
}

ActiveRequest& RequestBoard::new_node() {
  if (free_nodes_ == nullptr) return nodes_.emplace_back();
  return *std::exchange(free_nodes_, free_nodes_->next);
}

void RequestBoard::give_back(ActiveRequest& node) { node.next = std::exchange(free_nodes_, &node); }

void RequestBoard::enqueue(const IoRequest& request) {
  ensure(request.completion != nullptr);
  ActiveRequest& active = new_node();
  active.request = request;
  const auto* file = files_.find(request.file);
  active.file = file == nullptr ? nullptr : *file;
  active.failure = refusal(request, active.file.get());
  active.refused = !active.failure.ok();
  active.sequence = ++sequence_;
  active.epoch = epochs_.begin();
  active.cut = 0;
  active.given_up = false;
  ++outstanding_;
  if (active.file != nullptr) ++active.file->pending;
  if (active.failure.ok() && request.bytes > 0) return queue_.push(active);
  active.next = std::exchange(to_settle_, &active);
}

std::size_t RequestBoard::cancel(const IoCompletion& completion) {
  std::size_t num_given_up = 0;
  {
    const Lock lock(mutex_);
    ActiveRequest* next = nullptr;
    for (ActiveRequest* active = queue_.take_out(completion); active != nullptr; active = next) {
      next = active->next;
      give_up(*active);
      ++num_given_up;
    }
  }
  work_.notify_all();
  return num_given_up;
}

void RequestBoard::give_up(ActiveRequest& active) {
  active.given_up = true;
  active.refused = true;
  active.failure = {0, ECANCELED, "it was given up"};
  if (active.in_flight == 0) active.next = std::exchange(to_settle_, &active);
}

void RequestBoard::drain() {
  Lock lock(mutex_);
  const std::uint64_t epoch = epochs_.close();
  settled_.wait(lock, [&] { return epochs_.passed(epoch); });
}

std::uint64_t RequestBoard::outstanding() const {
  const Lock lock(mutex_);
  return outstanding_;
}

std::optional<Piece> RequestBoard::take() {
  Lock lock(mutex_);
  return take(lock);
}

std::optional<Piece> RequestBoard::wait_and_take() {
  Lock lock(mutex_);
  for (;;) {
    if (auto piece = take(lock)) return piece;
    if (stopped_) return std::nullopt;
    work_.wait(lock, [&] { return stopped_ || !queue_.empty() || to_settle_ != nullptr; });
  }
}

std::optional<Piece> RequestBoard::take(Lock& lock) {
  settle_waiting(lock);
  ActiveRequest* active = queue_.next();
  if (active == nullptr) return std::nullopt;
  Piece piece = cut(*active);
  if (active->fully_cut()) queue_.pop(*active);
  return piece;
}

void RequestBoard::settle_waiting(Lock& lock) {
  while (to_settle_ != nullptr) {
    ActiveRequest& active = *std::exchange(to_settle_, to_settle_->next);
    complete(active, lock);
  }
}

Piece RequestBoard::cut(ActiveRequest& active) {
  const std::uint64_t alignment = active.file->alignment();
  const std::uint64_t chunk = std::max(chunk_bytes_ / alignment * alignment, alignment);
  Piece piece;
  piece.active = &active;
  piece.start = active.cut;
  piece.bytes = std::min(chunk, active.request.bytes - active.cut);
  active.cut += piece.bytes;
  ++active.in_flight;
  piece.place = in_flight_.begin(piece, now_ns());
  return piece;
}

void RequestBoard::finish(Piece& piece) {
  Lock lock(mutex_);
  ActiveRequest& active = *piece.active;
  in_flight_.end(piece.place, now_ns());
  --active.in_flight;
  if (!piece.failure.ok()) {
    if (active.failure.ok()) active.failure = std::move(piece.failure);
    // What has not been cut yet is not tried. A request that is being cut heads its class.
    if (active.queued) queue_.pop(active);
  }
  if (active.in_flight == 0 && !active.queued) complete(active, lock);
}

void RequestBoard::complete(ActiveRequest& active, Lock& lock) {
  lock.unlock();
  active.request.completion->complete(result_of(active));
  lock.lock();
  if (active.file != nullptr) --active.file->pending;
  active.file = nullptr;
  epochs_.end(active.epoch);
  --outstanding_;
  give_back(active);
  settled_.notify_all();
}

// Not under the mutex: the message asks the file system, which may not answer for long.
IoResult RequestBoard::result_of(ActiveRequest& active) {
  IoResult result = std::move(active.failure);
  result.bytes = result.ok() ? active.request.bytes : 0;
  if (active.refused && active.file != nullptr)
    result.message = failure_message(active.request, *active.file, result.message);
  return result;
}

StallCheck RequestBoard::check_stall(std::int64_t now_ns, std::int64_t stall_ns) {
  const Lock lock(mutex_);
  return in_flight_.check(now_ns, stall_ns);
}

void RequestBoard::forget_pause(std::int64_t pause_ns, std::int64_t now_ns) {
  const Lock lock(mutex_);
  in_flight_.forget_pause(pause_ns, now_ns);
}

void RequestBoard::stop() {
  {
    const Lock lock(mutex_);
    stopped_ = true;
  }
  work_.notify_all();
}

bool RequestBoard::stopped() const {
  const Lock lock(mutex_);
  return stopped_;
}

}  // namespace strata
