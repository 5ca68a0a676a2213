#pragma once
// Parallel runs numbered tasks on a fixed set of threads, made with it and joined by its
// destructor. Which thread runs which task is left to chance, so a task may depend on its number
// only, never on the thread or on the number of threads.
//
// A pool of our own rather than a library's: ThreadSanitizer sees all its synchronisation, it has
// exactly as many threads as asked for, and a call allocates nothing.
//
// Thread contract: several threads may call for_each() at once, tasks too; the pool's threads help
// whom they can.

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace strata::cpu {

class Parallel {
 public:
  // `num_threads` counts the calling thread; 0: as many as this process may use cores.
  explicit Parallel(int num_threads);
  ~Parallel();
  Parallel(const Parallel&) = delete;
  Parallel& operator=(const Parallel&) = delete;

  int num_threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls f(0) .. f(num_tasks - 1), in any order; returns when all have returned. Throws what the
  // first failed one threw.
  template <typename F>
  void for_each(std::int64_t num_tasks, F f) {
    if (workers_.empty() || num_tasks <= 1) {
      for (std::int64_t task = 0; task < num_tasks; ++task) f(task);
    } else {
      run(
          num_tasks, [](void* callee, std::int64_t task) { (*static_cast<F*>(callee))(task); }, &f);
    }
  }

  // Calls f(begin, end) for the chunks of `chunk` elements (the last may be shorter) that make up
  // [0, count).
  template <typename F>
  void for_chunks(std::int64_t count, std::int64_t chunk, F f) {
    for_each((count + chunk - 1) / chunk,
             [&](std::int64_t i) { f(i * chunk, std::min(count, (i + 1) * chunk)); });
  }

 private:
  using Call = void (*)(void* callee, std::int64_t task);
  struct Batch;

  void run(std::int64_t num_tasks, Call call, void* callee);
  void open(Batch& batch);
  void close(Batch& batch);
  void remove(Batch& batch);  // with mutex_ held
  void work();

  std::mutex mutex_;
  std::condition_variable opened_;  // A batch was added to open_, or stopping_ set.
  std::condition_variable left_;    // The last helper left a batch.
  // Guarded by mutex_.
  std::vector<Batch*>
      open_;  // Batches that may still have tasks to hand out. They live on their callers' stacks.
  bool stopping_ = false;
  std::atomic<int> num_open_{0};  // open_.size(), for threads that spin before they sleep
  // Constant after construction.
  std::vector<std::thread> workers_;
};

}  // namespace strata::cpu
