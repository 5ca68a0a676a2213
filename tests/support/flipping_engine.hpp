#pragma once
// An IoEngine of whose reads one brings another bit than the drive holds.

#include <atomic>
#include <list>
#include <memory>
#include <utility>

#include "support/forwarding_engine.hpp"

namespace strata::testing {

class FlippingEngine : public ForwardingEngine {
 public:
  using ForwardingEngine::ForwardingEngine;
  ~FlippingEngine() override { real().drain(); }

  void submit(std::span<const IoRequest> requests) override {
    for (IoRequest request : requests) {
      if (request.op == IoOp::read && is_candidate(request) && !has_flipped_.exchange(true))
        request.completion = &flip_.emplace_back(request);
      real().submit({&request, 1});
    }
  }
  bool has_flipped() const { return has_flipped_; }

 protected:
  // The first read of these is the one.
  virtual bool is_candidate(const IoRequest&) { return true; }

 private:
  struct Flip final : IoCompletion {
    explicit Flip(const IoRequest& request) : asked(request) {}
    void complete(const IoResult& result) noexcept override {
      *asked.data ^= std::byte{1};
      asked.completion->complete(result);
    }
    const IoRequest asked;
  };

  std::atomic<bool> has_flipped_ = false;
  std::list<Flip> flip_;  // one at most
};

}  // namespace strata::testing
