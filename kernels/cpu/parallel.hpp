#pragma once
// Parallel runs numbered tasks on a fixed set of threads, made with it and joined by its
// destructor. Threads belong to NUMA nodes: of n tasks each node takes a run of neighbours in
// proportion to its threads, and helps the other nodes when its own are done, so that a pass over
// memory that was first touched in the same proportion stays near it. Which thread runs which task
// is left to chance all the same: a task may depend on its number only, never on the thread, the
// node or how many there are.
//
// A pool of our own rather than a library's: ThreadSanitizer sees all its synchronisation, it has
// exactly as many threads as asked for, and a call allocates nothing (docs/adr/0010).
//
// Thread contract: several threads may call for_each() at once, tasks too; the pool's threads help
// whom they can. A caller counts as a thread of the first node.

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace strata::cpu {

class Parallel {
 public:
  // Runs on each thread that the pool makes, with the position of its node. Must not throw.
  using OnStart = std::function<void(std::size_t node)>;

  // `num_threads` counts the calling thread; 0: as many as this process may use cores.
  explicit Parallel(int num_threads, const OnStart& on_start = {});
  // Threads of each node, the calling thread among the first's. Returns when `on_start` has run on
  // all threads made. Throws SystemError when the system has no thread left.
  explicit Parallel(const std::vector<int>& threads_of_node, const OnStart& on_start = {});
  ~Parallel();
  Parallel(const Parallel&) = delete;
  Parallel& operator=(const Parallel&) = delete;

  int num_threads() const { return num_threads_; }

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
  class TaskQueue;
  struct Batch;

  void start_threads(std::size_t node, int count, const OnStart& on_start);
  void await_start();
  void stop_threads();

  void run(std::int64_t num_tasks, Call call, void* callee);
  void divide(Batch& batch, std::int64_t num_tasks) const;
  void open(Batch& batch);
  void close(Batch& batch);
  void remove(Batch& batch);  // with mutex_ held
  void work(std::size_t node);

  std::mutex mutex_;
  std::condition_variable opened_;   // A batch was added to open_, or stopping_ set.
  std::condition_variable left_;     // The last helper left a batch.
  std::condition_variable started_;  // A thread has begun to work.
  // Guarded by mutex_.
  std::vector<Batch*>
      open_;  // Batches that may still have tasks to hand out. They live on their callers' stacks.
  std::size_t num_started_ = 0;
  bool stopping_ = false;
  std::atomic<int> num_open_{0};  // open_.size(), for threads that spin before they sleep
  // Constant after construction.
  std::vector<int> threads_of_node_;
  int num_threads_;
  std::vector<std::thread> workers_;
};

}  // namespace strata::cpu
