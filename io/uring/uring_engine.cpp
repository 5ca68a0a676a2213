// The `uring` engine: one thread owns a ring; callers reach it through the board and an eventfd.

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "io/common/posix_file.hpp"
#include "io/common/request_board.hpp"
#include "io/common/request_check.hpp"
#include "io/uring/ring_loop.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

class EventDescriptor {
 public:
  EventDescriptor() : descriptor_(::eventfd(0, EFD_CLOEXEC)) {
    check(descriptor_, "make", "an eventfd");
  }
  ~EventDescriptor() { ::close(descriptor_); }
  EventDescriptor(const EventDescriptor&) = delete;
  EventDescriptor& operator=(const EventDescriptor&) = delete;

  int descriptor() const { return descriptor_; }
  void signal() const {
    const std::uint64_t one = 1;
    while (::write(descriptor_, &one, sizeof(one)) < 0 && errno == EINTR) {
    }
  }

 private:
  const int descriptor_;
};

class UringEngine : public IoEngine {
 public:
  explicit UringEngine(const IoOptions& options);
  ~UringEngine() override;

  std::string_view name() const override { return "uring"; }
  FileId open(const std::string& path, OpenMode mode, Caching caching) override;
  FileInfo info(FileId file) const override { return board_.file(file)->info(); }
  void preallocate(FileId file, std::uint64_t bytes) override {
    board_.file(file)->preallocate(bytes);
  }
  void sync(FileId file) override { board_.file(file)->sync(); }
  void close(FileId file) override;
  void register_memory(std::span<std::byte> memory) override;
  void unregister_memory(std::span<std::byte> memory) override;
  void submit(std::span<const IoRequest> requests) override;
  void drain() override { board_.drain(); }
  std::string describe() const override;

 private:
  using Task = std::packaged_task<void(RingLoop&)>;

  void serve(std::promise<void> ready);
  void run(RingLoop& loop);
  void run_tasks(RingLoop& loop);
  // Runs on the engine's thread, the only one that may touch the ring, and is waited for.
  void on_ring(std::function<void(RingLoop&)> action) const;

  const IoOptions options_;
  RequestBoard board_;
  const EventDescriptor wake_;
  mutable std::mutex tasks_mutex_;
  mutable std::vector<Task> tasks_;  // guarded by tasks_mutex_
  std::jthread thread_;
};

UringEngine::UringEngine(const IoOptions& options)
    : options_(options), board_(options.chunk_bytes) {
  std::promise<void> ready;
  std::future<void> started = ready.get_future();
  thread_ =
      std::jthread([this, promise = std::move(ready)]() mutable { serve(std::move(promise)); });
  started.get();
}

UringEngine::~UringEngine() {
  board_.drain();
  board_.stop();
  wake_.signal();
}

void UringEngine::serve(std::promise<void> ready) {
  std::optional<RingLoop> loop;
  try {
    loop.emplace(board_, static_cast<unsigned>(options_.queue_depth), options_.chunk_bytes,
                 wake_.descriptor());
    ready.set_value();
  } catch (...) {
    return ready.set_exception(std::current_exception());
  }
  run(*loop);
}

void UringEngine::run(RingLoop& loop) {
  while (!board_.stopped() || !loop.idle()) {
    run_tasks(loop);
    loop.turn();
  }
}

void UringEngine::run_tasks(RingLoop& loop) {
  std::vector<Task> tasks;
  {
    const std::lock_guard lock(tasks_mutex_);
    tasks.swap(tasks_);
  }
  for (Task& task : tasks) task(loop);
}

void UringEngine::on_ring(std::function<void(RingLoop&)> action) const {
  Task task(std::move(action));
  std::future<void> done = task.get_future();
  {
    const std::lock_guard lock(tasks_mutex_);
    tasks_.push_back(std::move(task));
  }
  wake_.signal();
  done.get();
}

FileId UringEngine::open(const std::string& path, OpenMode mode, Caching caching) {
  return board_.add_file(std::make_shared<PosixFile>(path, mode, caching));
}

void UringEngine::close(FileId file) {
  const auto removed = board_.remove_file(file);
  on_ring([&](RingLoop& loop) { loop.forget(static_cast<PosixFile&>(*removed)); });
}

void UringEngine::register_memory(std::span<std::byte> memory) {
  on_ring([&](RingLoop& loop) { loop.buffers().add(memory); });
}

void UringEngine::unregister_memory(std::span<std::byte> memory) {
  on_ring([&](RingLoop& loop) { loop.buffers().remove(memory); });
}

void UringEngine::submit(std::span<const IoRequest> requests) {
  if (requests.empty()) return;
  board_.submit(requests);
  wake_.signal();
}

std::string UringEngine::describe() const {
  std::string ring;
  on_ring([&](RingLoop& loop) { ring = loop.describe(); });
  return fmt::format("io_uring: depth {}, pieces of {}, {}", options_.queue_depth,
                     format_bytes(options_.chunk_bytes), ring);
}

}  // namespace

std::unique_ptr<IoEngine> make_uring_engine(const IoOptions& options) {
  check_options(options);
  return std::make_unique<UringEngine>(options);
}

}  // namespace strata
