#include "comm/bulk_copy.hpp"

#include <cstdint>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/comm/bulk_copy.cpp"
#include "hwy/foreach_target.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace strata {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Four vectors a time. `target` is aligned to a vector; what is left over is the caller's.
std::size_t stream_vectors(std::uint8_t* target, const std::uint8_t* source, std::size_t bytes) {
  const hn::ScalableTag<std::uint8_t> d;
  const std::size_t n = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + 4 * n <= bytes; i += 4 * n) {
    const auto v0 = hn::LoadU(d, source + i), v1 = hn::LoadU(d, source + i + n);
    const auto v2 = hn::LoadU(d, source + i + 2 * n), v3 = hn::LoadU(d, source + i + 3 * n);
    hn::Stream(v0, d, target + i);
    hn::Stream(v1, d, target + i + n);
    hn::Stream(v2, d, target + i + 2 * n);
    hn::Stream(v3, d, target + i + 3 * n);
  }
  hwy::FlushStream();
  return i;
}

}  // namespace HWY_NAMESPACE
}  // namespace strata
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace strata {
namespace {

HWY_EXPORT(stream_vectors);

constexpr std::size_t alignment = 256;  // of the widest vectors there are

}  // namespace

void bulk_copy(std::byte* target, const std::byte* source, std::size_t bytes) {
  if (target == source || bytes == 0) return;
  if (bytes < bulk_bytes) {
    std::memcpy(target, source, bytes);
    return;
  }
  const std::size_t head = -reinterpret_cast<std::uintptr_t>(target) % alignment;
  std::memcpy(target, source, head);
  const std::size_t done =
      head + HWY_DYNAMIC_DISPATCH(stream_vectors)(
                 reinterpret_cast<std::uint8_t*>(target + head),
                 reinterpret_cast<const std::uint8_t*>(source + head), bytes - head);
  std::memcpy(target + done, source + done, bytes - done);
}

}  // namespace strata
#endif
