#pragma once
// An IoEngine that remembers the transfers that came by, and may spoil what is written: a test says
// which bytes a drive keeps in place of those that it was given.

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <iterator>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "contract/io/io_testing.hpp"
#include "support/forwarding_engine.hpp"

namespace strata::testing {

struct SeenTransfer {
  IoOp op = IoOp::read;
  std::string file;  // its name, without the folder
  std::uint64_t offset = 0, bytes = 0;
  IoPriority priority = IoPriority::now;
};

class WatchedEngine : public ForwardingEngine {
 public:
  // Of write number `number`, from 0: changes the bytes on their way, or leaves them.
  using Spoil = std::function<void(std::size_t number, std::span<std::byte> bytes)>;

  explicit WatchedEngine(std::unique_ptr<IoEngine> real, Spoil spoil = {})
      : ForwardingEngine(std::move(real)), spoil_(std::move(spoil)) {}
  ~WatchedEngine() override { real().drain(); }

  void submit(std::span<const IoRequest> requests) override {
    for (const IoRequest& request : requests) {
      const IoRequest passed = watched(request);
      real().submit({&passed, 1});
    }
  }

  std::vector<SeenTransfer> seen(IoOp op) const {
    const std::lock_guard lock(mutex_);
    std::vector<SeenTransfer> some;
    std::ranges::copy_if(seen_, std::back_inserter(some),
                         [&](const SeenTransfer& one) { return one.op == op; });
    return some;
  }
  // That read fails, counted from 0, with this errno.
  void fail_read(std::size_t number, int error_number) {
    const std::lock_guard lock(mutex_);
    failing_read_ = number;
    error_number_ = error_number;
  }
  void forget() {
    const std::lock_guard lock(mutex_);
    seen_.clear();
    most_read_bytes_ = read_bytes_;
  }
  // The most that was being read at the same time.
  std::uint64_t most_read_bytes() const {
    const std::lock_guard lock(mutex_);
    return most_read_bytes_;
  }
  // Until so many bytes of that file have been read; false after a minute.
  bool wait_for_reads(const std::string& file, std::uint64_t bytes) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::minutes(1), [&] {
      std::uint64_t read = 0;
      for (const SeenTransfer& one : seen_)
        if (one.op == IoOp::read && one.file == file) read += one.bytes;
      return read >= bytes;
    });
  }

 private:
  struct Transfer : IoCompletion {
    WatchedEngine* owner = nullptr;
    IoRequest asked;
    int error_number = 0;  // that it is said to end with
    std::unique_ptr<Buffer> spoilt;
    void complete(const IoResult& result) noexcept override { owner->ended(*this, result); }
  };

  IoRequest watched(const IoRequest& request) {
    const std::string path = info(request.file).path;
    const std::lock_guard lock(mutex_);
    seen_.push_back({request.op, path.substr(path.rfind('/') + 1), request.offset, request.bytes,
                     request.priority});
    Transfer& transfer = transfers_.emplace_back();
    transfer.owner = this;
    transfer.asked = request;
    IoRequest passed = request;
    passed.completion = &transfer;
    if (request.op == IoOp::read)
      begin_read(transfer);
    else if (spoil_)
      passed.data = spoil(transfer);
    return passed;
  }
  void begin_read(Transfer& transfer) {
    most_read_bytes_ = std::max(most_read_bytes_, read_bytes_ += transfer.asked.bytes);
    if (num_reads_++ == failing_read_) transfer.error_number = error_number_;
  }
  std::byte* spoil(Transfer& transfer) {
    transfer.spoilt = std::make_unique<Buffer>(transfer.asked.bytes);
    std::memcpy(transfer.spoilt->data(), transfer.asked.data, transfer.asked.bytes);
    spoil_(num_writes_++, transfer.spoilt->span());
    return transfer.spoilt->data();
  }
  void ended(const Transfer& transfer, const IoResult& result) {
    {
      const std::lock_guard lock(mutex_);
      if (transfer.asked.op == IoOp::read) read_bytes_ -= transfer.asked.bytes;
      changed_.notify_all();
    }
    const IoResult failed = {0, transfer.error_number, "cannot read: errno of a test"};
    transfer.asked.completion->complete(transfer.error_number == 0 ? result : failed);
  }

  const Spoil spoil_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  std::vector<SeenTransfer> seen_;
  std::list<Transfer> transfers_;
  std::size_t num_writes_ = 0, num_reads_ = 0;
  std::size_t failing_read_ = ~std::size_t{0};
  int error_number_ = 0;
  std::uint64_t read_bytes_ = 0, most_read_bytes_ = 0;  // under way
};

}  // namespace strata::testing
