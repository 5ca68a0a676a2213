#pragma once
// The checksum of everything that a store keeps: XXH3-64.

#include <xxhash.h>

#include <cstdint>
#include <memory>
#include <new>
#include <span>

namespace strata {

inline std::uint64_t checksum(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

// The same of bytes that come one part after the other.
class RunningChecksum {
 public:
  RunningChecksum() : state_(XXH3_createState()) {
    if (state_ == nullptr) throw std::bad_alloc();
    restart();
  }
  void restart() { XXH3_64bits_reset(state_.get()); }
  void add(std::span<const std::byte> bytes) {
    XXH3_64bits_update(state_.get(), bytes.data(), bytes.size());
  }
  std::uint64_t value() const { return XXH3_64bits_digest(state_.get()); }

 private:
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> state_;
};

}  // namespace strata
