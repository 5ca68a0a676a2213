#include "measure/state_touch.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/measure/state_touch.cpp"
#include "hwy/foreach_target.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace strata {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr std::int64_t step = 64;  // elements, so that one-byte elements fill a cache line

using Bytes = hn::ScalableTag<std::uint8_t>;

// Reads and writes the step's bytes of one array, `size` bytes an element. `with` is zero, which
// the compiler does not know: the state stays what it is.
template <std::int64_t size>
HWY_INLINE void change(std::uint8_t* at, hn::Vec<Bytes> with) {
  const Bytes d;
  for (std::int64_t i = 0; i < size * step; i += static_cast<std::int64_t>(hn::Lanes(d)))
    hn::StoreU(hn::Xor(hn::LoadU(d, at + i), with), d, at + i);
}

template <std::int64_t size>
HWY_INLINE hn::Vec<Bytes> read(const std::uint8_t* at, hn::Vec<Bytes> zero) {
  const Bytes d;
  auto all = hn::Zero(d);
  for (std::int64_t i = 0; i < size * step; i += static_cast<std::int64_t>(hn::Lanes(d)))
    all = hn::Xor(all, hn::LoadU(d, at + i));
  return hn::And(all, zero);
}

HWY_INLINE void stream(std::uint8_t* at, hn::Vec<Bytes> value) {
  const Bytes d;
  for (std::int64_t i = 0; i < 2 * step; i += static_cast<std::int64_t>(hn::Lanes(d)))
    hn::Stream(value, d, at + i);
}

// Sizes in bytes of an element of each array.
template <std::int64_t gradient, std::int64_t master, std::int64_t moment>
void touch(const UpdateArgs& args, std::int64_t begin, std::int64_t end) {
  const volatile std::uint8_t nothing = 0;
  const auto zero = hn::Set(Bytes(), nothing);
  for (std::int64_t i = begin; i + step <= end; i += step) {
    const auto with = read<gradient>(args.gradient.as<const std::uint8_t>() + gradient * i, zero);
    change<master>(args.master.as<std::uint8_t>() + master * i, with);
    change<moment>(args.moment1.as<std::uint8_t>() + moment * i, with);
    if (!args.moment2.empty()) change<moment>(args.moment2.as<std::uint8_t>() + moment * i, with);
    std::uint8_t* weight = args.weight.as<std::uint8_t>() + 2 * i;
    master == 2 ? change<2>(weight, with) : stream(weight, with);
  }
  hwy::FlushStream();
}

template <std::int64_t gradient, std::int64_t master>
void touch_moments(const UpdateArgs& args, std::int64_t begin, std::int64_t end) {
  const std::int64_t moment = dtype_bytes(args.moment1.dtype);
  if (moment == 4) touch<gradient, master, 4>(args, begin, end);
  if (moment == 2) touch<gradient, master, 2>(args, begin, end);
  if (moment == 1) touch<gradient, master, 1>(args, begin, end);
}

void touch_range(const UpdateArgs& args, std::int64_t begin, std::int64_t end) {
  const bool wide = args.gradient.dtype == DType::f32, split = args.master.dtype == DType::u16;
  if (wide) split ? touch_moments<4, 2>(args, begin, end) : touch_moments<4, 4>(args, begin, end);
  if (!wide) split ? touch_moments<2, 2>(args, begin, end) : touch_moments<2, 4>(args, begin, end);
}

}  // namespace HWY_NAMESPACE
}  // namespace strata
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace strata {
namespace {

HWY_EXPORT(touch_range);

}  // namespace

void touch_state(const UpdateArgs& args, std::int64_t begin, std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(touch_range)(args, begin, end);
}

}  // namespace strata
#endif
