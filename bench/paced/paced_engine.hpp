#pragma once
// An IoEngine around a real one whose files lie on a drive of stated rates: a transfer completes
// when the real one has and such a drive would have. Reads queue behind reads and writes behind
// writes; where `serial`, behind both. Burns no CPU.

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <thread>

#include "strata/core/clock.hpp"
#include "tests/support/forwarding_engine.hpp"

namespace strata::bench {

struct DriveRates {
  double read_bytes_per_s = 0, write_bytes_per_s = 0;
  bool serial = false;  // reads and writes share the drive's time
};

// Calls things at their times, on one thread.
class Timer {
 public:
  Timer() : thread_([this](std::stop_token stop) { run(stop); }) {}
  ~Timer() {
    thread_.request_stop();
    wake_.notify_all();
  }
  void at(std::int64_t time_ns, std::function<void()> call) {
    {
      std::lock_guard lock(mutex_);
      calls_.emplace(time_ns, std::move(call));
    }
    wake_.notify_all();
  }

 private:
  void run(std::stop_token stop) {
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested() || !calls_.empty()) {
      const std::int64_t left = calls_.empty() ? 10'000'000 : calls_.begin()->first - now_ns();
      if (left > 0) {
        wake_.wait_for(lock, std::chrono::nanoseconds(left));
        continue;
      }
      const auto call = std::move(calls_.begin()->second);
      calls_.erase(calls_.begin());
      lock.unlock();
      call();
      lock.lock();
    }
  }
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::multimap<std::int64_t, std::function<void()>> calls_;
  std::jthread thread_;
};

class PacedEngine final : public strata::testing::ForwardingEngine {
 public:
  PacedEngine(std::unique_ptr<IoEngine> real, const DriveRates& rates)
      : ForwardingEngine(std::move(real)), rates_(rates) {}
  ~PacedEngine() override { drain(); }

  void submit(std::span<const IoRequest> requests) override {
    for (const IoRequest& request : requests) submit(request);
  }
  void drain() override {
    real().drain();
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [&] { return in_flight_ == 0; });
  }

 private:
  // Passes a result on when its time has come.
  struct Held final : IoCompletion {
    PacedEngine* engine = nullptr;
    IoCompletion* completion = nullptr;
    std::int64_t due_ns = 0;
    void complete(const IoResult& result) noexcept override { engine->hold(this, result); }
  };

  void submit(IoRequest request) {
    auto* held = new Held;
    held->engine = this;
    held->completion = request.completion;
    {
      std::lock_guard lock(mutex_);
      ++in_flight_;
      held->due_ns = reserve(request);
    }
    request.completion = held;
    real().submit({&request, 1});
  }

  // When the drive is through with the request.
  std::int64_t reserve(const IoRequest& request) {
    const bool reads = request.op == IoOp::read;
    const double rate = reads ? rates_.read_bytes_per_s : rates_.write_bytes_per_s;
    std::int64_t& free = free_ns_[rates_.serial || reads ? 0 : 1];
    free = std::max(free, now_ns()) +
           static_cast<std::int64_t>(1e9 * static_cast<double>(request.bytes) / rate);
    return free;
  }

  void hold(Held* held, const IoResult& result) {
    timer_.at(held->due_ns, [this, held, result] {
      held->completion->complete(result);
      delete held;
      std::lock_guard lock(mutex_);
      if (--in_flight_ == 0) idle_.notify_all();
    });
  }

  const DriveRates rates_;
  std::mutex mutex_;
  std::condition_variable idle_;
  std::int64_t free_ns_[2] = {0, 0};
  int in_flight_ = 0;
  Timer timer_;
};

}  // namespace strata::bench
