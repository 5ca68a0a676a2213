#pragma once
// A ContentHash is the XXH3-64 of bytes that come in pieces. One thread.

#include <xxhash.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "strata/core/error.hpp"

namespace strata {

class ContentHash {
 public:
  ContentHash() : state_(XXH3_createState()) {
    ensure(state_ != nullptr);
    XXH3_64bits_reset(state_.get());
  }

  void add(const void* data, std::size_t bytes) { XXH3_64bits_update(state_.get(), data, bytes); }
  std::uint64_t value() const { return XXH3_64bits_digest(state_.get()); }

 private:
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> state_;
};

}  // namespace strata
