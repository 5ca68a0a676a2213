#include "parallel_sync.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace strata {
namespace {

constexpr std::size_t num_threads_max = 16;

// Each file is flushed by the thread that comes to it first.
class FileSyncs {
 public:
  FileSyncs(IoEngine& engine, std::span<const FileId> files) : engine_(engine), files_(files) {}

  void work() noexcept {
    try {
      for (std::size_t i = next_++; i < files_.size(); i = next_++) engine_.sync(files_[i]);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
    }
  }
  void rethrow_failure() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  IoEngine& engine_;
  const std::span<const FileId> files_;
  std::atomic<std::size_t> next_ = 0;
  std::mutex mutex_;
  std::exception_ptr failure_;  // guarded by mutex_ while threads run
};

}  // namespace

void sync_files(IoEngine& engine, std::span<const FileId> files) {
  FileSyncs syncs(engine, files);
  {
    std::vector<std::jthread> others;
    const std::size_t num_threads = std::min(files.size(), num_threads_max);
    for (std::size_t i = 1; i < num_threads; ++i) others.emplace_back([&] { syncs.work(); });
    syncs.work();
  }
  syncs.rethrow_failure();
}

}  // namespace strata
