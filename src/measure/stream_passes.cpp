#include "measure/stream_passes.hpp"

#include <array>
#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/measure/stream_passes.cpp"
#include "hwy/foreach_target.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace strata {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using DoublesTag = hn::ScalableTag<double>;
constexpr std::int64_t line_elements = 8;
constexpr double stream_factor = 3;

struct NormalStore {
  static HWY_INLINE void store(hn::Vec<DoublesTag> value, double* at) {
    hn::StoreU(value, DoublesTag(), at);
  }
};
struct StreamedStore {
  static HWY_INLINE void store(hn::Vec<DoublesTag> value, double* at) {
    hn::Stream(value, DoublesTag(), at);
  }
};

// Stores f(i) at to[i] for each vector.
template <class Store, class F>
HWY_INLINE void write_lines(double* to, std::int64_t begin, std::int64_t end, F f) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(DoublesTag()));
  for (std::int64_t i = begin; i + line_elements <= end; i += line_elements)
    for (std::int64_t j = i; j < i + line_elements; j += lanes) Store::store(f(j), to + j);
}

// Bits, not sums: no latency of an addition stands in the way.
void read_lines(const double* from, std::int64_t begin, std::int64_t end) {
  const hn::RebindToUnsigned<DoublesTag> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto* bits = reinterpret_cast<const std::uint64_t*>(from);
  auto all = hn::Zero(d);
  for (std::int64_t i = begin; i + line_elements <= end; i += line_elements)
    for (std::int64_t j = i; j < i + line_elements; j += lanes)
      all = hn::Xor(all, hn::LoadU(d, bits + j));
  HWY_ALIGN std::array<std::uint64_t, hn::MaxLanes(d)> sums = {};
  hn::Store(all, d, sums.data());
  std::uint64_t sum = 0;
  for (const std::uint64_t lane : sums) sum ^= lane;
  [[maybe_unused]] volatile std::uint64_t kept = sum;
}

template <class Store>
HWY_INLINE void stream_with(StreamPass pass, const StreamArrays& arrays, std::int64_t begin,
                            std::int64_t end) {
  const DoublesTag d;
  const auto [a, b, c] = arrays;
  const auto by = hn::Set(d, stream_factor);
  const auto at = [d](const double* array, std::int64_t i)
                      HWY_ATTR { return hn::LoadU(d, array + i); };
  switch (pass) {
    case StreamPass::read:
      return read_lines(a, begin, end);
    case StreamPass::fill:
      return write_lines<Store>(a, begin, end, [=](std::int64_t) HWY_ATTR { return by; });
    case StreamPass::copy:
      return write_lines<Store>(c, begin, end, [=](std::int64_t i) HWY_ATTR { return at(a, i); });
    case StreamPass::scale:
      return write_lines<Store>(b, begin, end,
                                [=](std::int64_t i) HWY_ATTR { return hn::Mul(by, at(c, i)); });
    case StreamPass::add:
      return write_lines<Store>(
          c, begin, end, [=](std::int64_t i) HWY_ATTR { return hn::Add(at(a, i), at(b, i)); });
    case StreamPass::triad:
      return write_lines<Store>(a, begin, end, [=](std::int64_t i) HWY_ATTR {
        return hn::Add(at(b, i), hn::Mul(by, at(c, i)));
      });
    case StreamPass::change:
      return write_lines<Store>(a, begin, end,
                                [=](std::int64_t i) HWY_ATTR { return hn::Neg(at(a, i)); });
  }
}

void stream_range(StreamPass pass, StreamStores stores, const StreamArrays& arrays,
                  std::int64_t begin, std::int64_t end) {
  if (stores == StreamStores::normal) return stream_with<NormalStore>(pass, arrays, begin, end);
  stream_with<StreamedStore>(pass, arrays, begin, end);
  hwy::FlushStream();
}

}  // namespace HWY_NAMESPACE
}  // namespace strata
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace strata {
namespace {

HWY_EXPORT(stream_range);

}  // namespace

void run_stream_pass(StreamPass pass, StreamStores stores, const StreamArrays& arrays,
                     std::int64_t begin, std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(stream_range)(pass, stores, arrays, begin, end);
}

}  // namespace strata
#endif
