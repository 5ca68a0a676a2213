#pragma once
// An IoEngine around a real one in which one operation fails, counted from the moment that it is
// armed: any transfer, open, reservation, flush, and whatever the FileSystem does. Or that one and
// all after it, as on a device that was pulled out.

#include <fmt/format.h>

#include <atomic>
#include <cstring>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "strata/core/error.hpp"
#include "support/forwarding_engine.hpp"
#include "support/forwarding_file_system.hpp"

namespace strata::testing {

// Which operations fail.
class OneFault {
 public:
  enum class Lasting : std::uint8_t { once, from_then_on };

  void arm(std::uint64_t at, int error_number, Lasting lasting) {
    count_ = 0;
    at_ = at;
    error_number_ = error_number;
    lasting_ = lasting;
  }
  void disarm() { at_ = never; }
  bool strikes() {
    const std::uint64_t number = count_++;
    return number == at_ || (number > at_ && lasting_ == Lasting::from_then_on);
  }
  std::uint64_t count() const { return count_; }  // operations since it was armed
  int error_number() const { return error_number_; }
  void need(const char* action, const std::string& path) {
    if (strikes()) throw SystemError(action, path, error_number_);
  }

 private:
  static constexpr std::uint64_t never = ~std::uint64_t{0};
  std::atomic<std::uint64_t> count_ = 0, at_ = never;
  std::atomic<int> error_number_ = 0;
  std::atomic<Lasting> lasting_ = Lasting::once;
};

class OneFaultFileSystem : public ForwardingFileSystem {
 public:
  OneFaultFileSystem(FileSystem& real, OneFault& fault) : real_(real), fault_(fault) {}

  // May fail with nothing written, or after half of it.
  void write_file(const std::string& path, std::span<const std::byte> bytes) override {
    at("open", path);
    if (fault_.strikes()) {
      real_.write_file(path, bytes.first(bytes.size() / 2));
      throw SystemError("write", path, fault_.error_number());
    }
    real_.write_file(path, bytes);
  }

 private:
  FileSystem& at(const char* action, const std::string& path) const override {
    fault_.need(action, path);
    return real_;
  }

  FileSystem& real_;
  OneFault& fault_;
};

class OneFaultEngine : public ForwardingEngine {
 public:
  explicit OneFaultEngine(std::unique_ptr<IoEngine> real)
      : ForwardingEngine(std::move(real)), files_(this->real().file_system(), fault_) {}
  ~OneFaultEngine() override { real().drain(); }

  OneFault& fault() { return fault_; }

  FileId open(const std::string& path, OpenMode mode, Caching caching) override {
    fault_.need("open", path);
    return real().open(path, mode, caching);
  }
  void preallocate(FileId file, std::uint64_t bytes) override {
    fault_.need("reserve space for", info(file).path);
    real().preallocate(file, bytes);
  }
  void sync(FileId file) override {
    fault_.need("flush", info(file).path);
    real().sync(file);
  }
  void submit(std::span<const IoRequest> requests) override {
    std::vector<IoRequest> passed(requests.begin(), requests.end());
    for (IoRequest& request : passed)
      if (fault_.strikes()) request.completion = &failing(request);
    real().submit(passed);
  }
  FileSystem& file_system() override { return files_; }

 private:
  // The transfer happens: what a failed one leaves may be anything. Then it is said to have failed.
  struct Failing : IoCompletion {
    IoCompletion* target = nullptr;
    IoResult answer;
    void complete(const IoResult&) noexcept override { target->complete(answer); }
  };
  IoCompletion& failing(const IoRequest& request) {
    const std::lock_guard lock(mutex_);
    Failing& one = failing_.emplace_back();
    one.target = request.completion;
    one.answer = {0, fault_.error_number(),
                  fmt::format("cannot {} {} bytes at offset {} of {}: {} (errno {})",
                              request.op == IoOp::read ? "read" : "write", request.bytes,
                              request.offset, info(request.file).path,
                              std::strerror(fault_.error_number()), fault_.error_number())};
    return one;
  }

  OneFault fault_;
  OneFaultFileSystem files_;
  std::mutex mutex_;
  std::list<Failing> failing_;  // guarded by mutex_
};

}  // namespace strata::testing
