#pragma once
// Counts every heap allocation of this executable, all threads and libraries included:
// allocation_counter.cpp replaces the malloc family. For glibc, and not beside sanitizers.

#include <cstdint>

namespace strata::testing {

struct AllocationCount {
  std::int64_t allocations = 0;  // calls that gave memory
  std::int64_t live_bytes = 0;   // given minus given back
};

// Since the process began.
AllocationCount allocation_count();

// While one lives, its thread's allocations are left out of `allocations`.
class Uncounted {
 public:
  Uncounted();
  ~Uncounted();
  Uncounted(const Uncounted&) = delete;
  Uncounted& operator=(const Uncounted&) = delete;
};

}  // namespace strata::testing
