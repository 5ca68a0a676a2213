#include "io/common/request_board.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "io/common/request_check.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

constexpr int nodes_reserved = 512;  // more than the slots of any sensible plan can keep in flight

}  // namespace

RequestBoard::RequestBoard(std::uint64_t chunk_bytes) : chunk_bytes_(chunk_bytes) {
  for (int i = 0; i < nodes_reserved; ++i) give_back(nodes_.emplace_back());
}

FileId RequestBoard::add_file(std::shared_ptr<OpenFile> file) {
  const Lock lock(mutex_);
  files_.push_back(std::move(file));
  return FileId{static_cast<std::int32_t>(files_.size()) - 1};
}

std::shared_ptr<OpenFile> RequestBoard::find(FileId id) const {
  return id.valid() && id.index() < files_.size() ? files_[id.index()] : nullptr;
}

std::shared_ptr<OpenFile> RequestBoard::file(FileId id) const {
  const Lock lock(mutex_);
  auto found = find(id);
  if (found == nullptr) throw SystemError("use", fmt::format("I/O file {}", id.value), EBADF);
  return found;
}

std::shared_ptr<OpenFile> RequestBoard::remove_file(FileId id) {
  auto removed = file(id);
  Lock lock(mutex_);
  files_[id.index()] = nullptr;
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
  active.file = find(request.file);
  active.failure = refusal(request, active.file.get());
  active.sequence = ++sequence_;
  active.epoch = epochs_.begin();
  active.cut = 0;
  ++outstanding_;
  if (active.file != nullptr) ++active.file->pending;
  if (active.failure.ok() && request.bytes > 0) return queue_.push(active);
  active.next = std::exchange(to_settle_, &active);
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
  return piece;
}

void RequestBoard::finish(Piece& piece) {
  Lock lock(mutex_);
  ActiveRequest& active = *piece.active;
  --active.in_flight;
  if (!piece.failure.ok()) {
    if (active.failure.ok()) active.failure = std::move(piece.failure);
    // What has not been cut yet is not tried. A request that is being cut heads its class.
    if (active.queued) queue_.pop(active);
  }
  if (active.in_flight == 0 && !active.queued) complete(active, lock);
}

void RequestBoard::complete(ActiveRequest& active, Lock& lock) {
  IoResult result = std::move(active.failure);
  result.bytes = result.ok() ? active.request.bytes : 0;
  IoCompletion* completion = active.request.completion;
  lock.unlock();
  completion->complete(result);
  lock.lock();
  if (active.file != nullptr) --active.file->pending;
  active.file = nullptr;
  epochs_.end(active.epoch);
  --outstanding_;
  give_back(active);
  settled_.notify_all();
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
