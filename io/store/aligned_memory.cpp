#include "io/store/aligned_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>

#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"

namespace strata {

AlignedMemory::AlignedMemory(std::uint64_t alignment, std::uint64_t bytes, const char* user)
    : bytes_(bytes) {
  const std::uint64_t room = align_up(std::max<std::uint64_t>(bytes, 1), alignment);
  memory_.reset(static_cast<std::byte*>(std::aligned_alloc(alignment, room)));
  if (memory_ == nullptr) throw OutOfMemory(user, bytes, 0);
  // Advice only: refusal costs speed, not correctness.
  if (alignment % huge_page_bytes == 0) ::madvise(memory_.get(), room, MADV_HUGEPAGE);
}

void AlignedMemory::Free::operator()(std::byte* memory) const { std::free(memory); }

}  // namespace strata
