#pragma once
// Copies of what is too big to be found in a cache again: past the caches, which spares the read of
// the target that an ordinary store begins with.

#include <cstddef>

namespace strata {

// From this size on, stores go past the caches.
inline constexpr std::size_t bulk_bytes = std::size_t{1} << 20;

// As memcpy; nothing is done where `target` is `source`. Any thread.
void bulk_copy(std::byte* target, const std::byte* source, std::size_t bytes);

}  // namespace strata
