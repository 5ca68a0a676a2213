#include "io/common/posix_engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace strata {

PosixEngine::PosixEngine(std::string name, const IoOptions& options, QueueFactory make_queue,
                         DeviceOf device_of)
    : name_(std::move(name)),
      make_queue_(std::move(make_queue)),
      device_of_(std::move(device_of)),
      watch_(options.on_stall, options.stall_seconds) {
  add_queue();
}

PosixEngine::~PosixEngine() { drain(); }  // while somebody watches

void PosixEngine::add_queue() {
  const std::size_t number = num_queues_;
  auto queue = make_queue_(static_cast<int>(number));
  for (const auto memory : memory_.all()) queue->register_memory(memory);
  watch_.add(queue->board());
  queues_[number] = std::move(queue);
  num_queues_ = number + 1;
}

std::span<const std::unique_ptr<DeviceQueue>> PosixEngine::queues() const {
  return std::span(queues_).first(num_queues_);
}

std::size_t PosixEngine::queue_of(FileId file) const {
  const auto number = static_cast<std::size_t>(FileTable::queue_of(file));
  return number < num_queues_ ? number : 0;  // it will say that the file is not open
}

std::size_t PosixEngine::queue_for(std::uint64_t device) {
  const auto known = std::ranges::find(devices_, device);
  if (known != devices_.end()) return static_cast<std::size_t>(known - devices_.begin());
  if (devices_.size() == queues_.size()) return queues_.size() - 1;
  if (devices_.size() == num_queues_) add_queue();
  devices_.push_back(device);
  return devices_.size() - 1;
}

FileId PosixEngine::open(const std::string& path, OpenMode mode, Caching caching) {
  auto file = std::make_shared<PosixFile>(path, mode, caching);
  const std::lock_guard lock(mutex_);
  return queues_[queue_for(device_of_(*file))]->board().add_file(std::move(file));
}

std::shared_ptr<OpenFile> PosixEngine::open_file(FileId file) const {
  return queues_[queue_of(file)]->board().file(file);
}

void PosixEngine::close(FileId file) {
  DeviceQueue& queue = *queues_[queue_of(file)];
  const auto removed = queue.board().remove_file(file);
  queue.forget(static_cast<PosixFile&>(*removed));
}

void PosixEngine::register_memory(std::span<std::byte> memory) {
  const std::lock_guard lock(mutex_);
  memory_.add(memory);
  for (const auto& queue : queues()) queue->register_memory(memory);
}

void PosixEngine::unregister_memory(std::span<std::byte> memory) {
  const std::lock_guard lock(mutex_);
  memory_.remove(memory);
  for (const auto& queue : queues()) queue->unregister_memory(memory);
}

void PosixEngine::submit(std::span<const IoRequest> requests) {
  if (requests.empty()) return;
  const std::size_t first = queue_of(requests.front().file);
  const auto elsewhere = [&](const IoRequest& one) { return queue_of(one.file) != first; };
  if (std::ranges::none_of(requests, elsewhere)) return submit_to(*queues_[first], requests);
  for (std::size_t number = 0; number < num_queues_; ++number) submit_part(number, requests);
}

// The requests of one queue out of a mixed batch, gathered without allocating.
void PosixEngine::submit_part(std::size_t number, std::span<const IoRequest> requests) {
  std::array<IoRequest, 64> part;
  std::size_t size = 0;
  for (const IoRequest& request : requests) {
    if (queue_of(request.file) != number) continue;
    part[size++] = request;
    if (size == part.size())
      submit_to(*queues_[number], std::span(part).first(std::exchange(size, 0)));
  }
  if (size > 0) submit_to(*queues_[number], std::span(part).first(size));
}

void PosixEngine::submit_to(DeviceQueue& queue, std::span<const IoRequest> requests) {
  queue.board().submit(requests);
  queue.wake();
}

std::size_t PosixEngine::cancel(const IoCompletion& completion) {
  std::size_t num_given_up = 0;
  for (const auto& queue : queues()) {
    const std::size_t here = queue->board().cancel(completion);
    if (here > 0) queue->wake();
    num_given_up += here;
  }
  return num_given_up;
}

void PosixEngine::drain() {
  for (const auto& queue : queues()) queue->board().drain();
}

std::string PosixEngine::describe() const {
  const std::lock_guard lock(mutex_);
  std::string text = queues_[0]->describe();
  if (num_queues_ > 1)
    text = fmt::format("{} devices, a queue for each; {}", num_queues_.load(), text);
  for (const auto& queue : queues().subspan(1)) text += "; and " + queue->describe();
  return text;
}

}  // namespace strata
