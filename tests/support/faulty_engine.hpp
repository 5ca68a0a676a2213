#pragma once
// An IoEngine around a real one, of which one transfer fails, comes back damaged, or is the last
// that its disk does.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/faulty_file_system.hpp"
#include "support/forwarding_engine.hpp"

namespace strata::testing {

enum class FaultKind : std::uint8_t {
  fails,       // one transfer
  disk_gone,   // that transfer and everything after it
  flips_a_bit  // of what one read brings back
};

struct Fault {
  std::uint64_t at = ~std::uint64_t{0};  // transfers submitted before, of `op` alone when given
  FaultKind kind = FaultKind::fails;
  int error_number = 0;
  std::optional<IoOp> op = {};
};

class FaultyEngine : public ForwardingEngine {
 public:
  FaultyEngine(std::unique_ptr<IoEngine> real, const Fault& fault)
      : ForwardingEngine(std::move(real)), fault_(fault), files_(this->real().file_system()) {}
  ~FaultyEngine() override { real().drain(); }

  // Submitted so far, of the kind that the fault counts.
  std::uint64_t transfers() const {
    std::lock_guard lock(mutex_);
    return transfers_;
  }

  FileId open(const std::string& path, OpenMode mode, Caching caching) override {
    files_.need("open", path);
    return real().open(path, mode, caching);
  }
  void preallocate(FileId file, std::uint64_t bytes) override {
    files_.need("reserve space for", info(file).path);
    real().preallocate(file, bytes);
  }
  void sync(FileId file) override {
    files_.need("flush", info(file).path);
    real().sync(file);
  }
  void submit(std::span<const IoRequest> requests) override {
    std::vector<IoRequest> passed(requests.begin(), requests.end());
    for (IoRequest& request : passed)
      if (strikes(request)) request.completion = &intercept(request);
    real().submit(passed);
  }
  std::size_t cancel(const IoCompletion& completion) override {
    std::size_t given_up = real().cancel(completion);
    for (const auto& held : intercepted(completion)) given_up += real().cancel(*held);
    return given_up;
  }
  FileSystem& file_system() override { return files_; }

 private:
  // Takes a transfer's answer and gives on another. The real transfer happens: what a failed one
  // leaves in memory or on disk may be anything.
  class Interceptor : public IoCompletion {
   public:
    Interceptor(FaultyEngine& engine, const IoRequest& request)
        : engine_(engine), request_(request) {}
    const IoCompletion* target() const { return request_.completion; }
    void complete(const IoResult& result) noexcept override {
      const std::shared_ptr<Interceptor> self = engine_.release(*this);
      request_.completion->complete(engine_.answer(request_, result));
    }

   private:
    FaultyEngine& engine_;
    const IoRequest request_;
  };

  bool strikes(const IoRequest& request) {
    std::lock_guard lock(mutex_);
    const bool gone = fault_.kind == FaultKind::disk_gone && transfers_ > fault_.at;
    if (fault_.op && *fault_.op != request.op) return gone;
    const bool first = transfers_++ == fault_.at;
    if (first && fault_.kind == FaultKind::disk_gone) files_.go_away(fault_.error_number);
    return first || gone;
  }
  IoCompletion& intercept(const IoRequest& request) {
    std::lock_guard lock(mutex_);
    interceptors_.push_back(std::make_shared<Interceptor>(*this, request));
    return *interceptors_.back();
  }
  std::vector<std::shared_ptr<Interceptor>> intercepted(const IoCompletion& target) const {
    std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<Interceptor>> found;
    for (const auto& held : interceptors_)
      if (held->target() == &target) found.push_back(held);
    return found;
  }
  std::shared_ptr<Interceptor> release(const Interceptor& ended) {
    std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(interceptors_, &ended, &std::shared_ptr<Interceptor>::get);
    std::shared_ptr<Interceptor> held = std::move(*found);
    interceptors_.erase(found);
    return held;
  }
  IoResult answer(const IoRequest& request, const IoResult& real) const {
    if (!real.ok()) return real;
    if (fault_.kind == FaultKind::flips_a_bit) {
      request.data[0] ^= std::byte{4};
      return real;
    }
    return {0, fault_.error_number,
            fmt::format("cannot {} {} bytes at offset {} of {}: {} (errno {})",
                        request.op == IoOp::read ? "read" : "write", request.bytes, request.offset,
                        info(request.file).path, std::strerror(fault_.error_number),
                        fault_.error_number)};
  }

  const Fault fault_;
  FaultyFileSystem files_;
  mutable std::mutex mutex_;
  std::uint64_t transfers_ = 0;                           // guarded by mutex_
  std::list<std::shared_ptr<Interceptor>> interceptors_;  // guarded by mutex_
};

}  // namespace strata::testing
