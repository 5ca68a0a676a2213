#pragma once
// What a fake has found wrong with its use. Thread contract: any thread.

#include <mutex>
#include <string>
#include <vector>

namespace strata::testing {

class FakeComplaints {
 public:
  void add(std::string text) {
    const std::lock_guard lock(mutex_);
    ++count_;
    if (texts_.size() < kept_max) texts_.push_back(std::move(text));
  }
  std::vector<std::string> texts() const {
    const std::lock_guard lock(mutex_);
    return texts_;
  }
  std::size_t count() const {
    const std::lock_guard lock(mutex_);
    return count_;
  }

 private:
  static constexpr std::size_t kept_max = 20;
  mutable std::mutex mutex_;
  std::vector<std::string> texts_;
  std::size_t count_ = 0;
};

}  // namespace strata::testing
