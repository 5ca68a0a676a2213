#include "alloc/allocation_counter.hpp"

#include <malloc.h>

#include <atomic>
#include <cerrno>
#include <cstddef>

extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* memory, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);
void __libc_free(void* memory);
}

namespace {

// Constant initialisation: malloc is called before any constructor runs.
constinit std::atomic<std::int64_t> allocations{0}, live_bytes{0};
constinit thread_local int uncounted = 0;

std::int64_t size_of(void* memory) {
  return static_cast<std::int64_t>(::malloc_usable_size(memory));
}

void* count(void* memory) {
  if (memory == nullptr) return memory;
  if (uncounted == 0) allocations.fetch_add(1, std::memory_order_relaxed);
  live_bytes.fetch_add(size_of(memory), std::memory_order_relaxed);
  return memory;
}

void uncount(void* memory) {
  if (memory != nullptr) live_bytes.fetch_sub(size_of(memory), std::memory_order_relaxed);
}

}  // namespace

extern "C" {
void* malloc(std::size_t bytes) { return count(__libc_malloc(bytes)); }
void* calloc(std::size_t number, std::size_t bytes) { return count(__libc_calloc(number, bytes)); }
void* realloc(void* memory, std::size_t bytes) {
  uncount(memory);
  return count(__libc_realloc(memory, bytes));
}
void* memalign(std::size_t alignment, std::size_t bytes) {
  return count(__libc_memalign(alignment, bytes));
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  return count(__libc_memalign(alignment, bytes));
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) {
  void* given = count(__libc_memalign(alignment, bytes));
  if (given == nullptr) return ENOMEM;
  *memory = given;
  return 0;
}
void free(void* memory) {
  uncount(memory);
  __libc_free(memory);
}
}

namespace strata::testing {

Uncounted::Uncounted() { ++uncounted; }
Uncounted::~Uncounted() { --uncounted; }

AllocationCount allocation_count() { return {allocations.load(), live_bytes.load()}; }

}  // namespace strata::testing
