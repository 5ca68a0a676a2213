#pragma once
// kernels/cuda/simt.hpp on the emulator: included by it alone. Every access is checked for bounds
// and alignment and noted for races.

#include <bit>
#include <cmath>
#include <cstring>
#include <source_location>
#include <type_traits>

#include "simt/emulator.hpp"
#include "simt/matrix_unit.hpp"
#include "strata/core/tensor_view.hpp"

#define STRATA_KERNEL(...) inline void
#define STRATA_DEVICE inline
#define STRATA_UNROLL
#define STRATA_PARAMETER const

namespace strata::cuda {

using Place = std::source_location;

inline simt::Emulator& emulator() { return simt::Emulator::running(); }
inline int thread_index() { return emulator().thread_index(); }
inline int block_threads() { return emulator().shape().threads; }
inline std::int64_t block_x() { return emulator().block_x(); }
inline std::int64_t block_y() { return emulator().block_y(); }
inline std::int64_t grid_x() { return emulator().shape().grid_x; }
inline int lane_index() { return thread_index() % simt::warp_lanes; }
inline int warp_index() { return thread_index() / simt::warp_lanes; }

inline void sync_threads(const Place& where = Place::current()) { emulator().sync_threads(where); }
inline void sync_warp(const Place& where = Place::current()) { emulator().sync_warp(where); }

// --- Warps

template <class T>
simt::LaneValue lane_value(const T& value) {
  static_assert(sizeof(T) <= simt::exchange_bytes && std::is_trivially_copyable_v<T>);
  simt::LaneValue result{};
  std::memcpy(result.bytes.data(), &value, sizeof(T));
  return result;
}
template <class T>
T value_of(const simt::WarpValues& values, int lane) {
  T result;
  std::memcpy(static_cast<void*>(&result), values[static_cast<std::size_t>(lane)].bytes.data(),
              sizeof(T));
  return result;
}
template <class T>
T shuffle(T value, int lane, const Place& where = Place::current()) {
  return value_of<T>(emulator().exchange(lane_value(value), where), lane % simt::warp_lanes);
}
template <class T>
T shuffle_xor(T value, int mask, const Place& where = Place::current()) {
  const int lane = lane_index() ^ mask;
  return value_of<T>(emulator().exchange(lane_value(value), where), lane);
}
template <class T>
T shuffle_down(T value, int by, const Place& where = Place::current()) {
  const int from = lane_index() + by;
  const int lane = from < simt::warp_lanes ? from : lane_index();
  return value_of<T>(emulator().exchange(lane_value(value), where), lane);
}
inline std::uint32_t ballot(bool flag, const Place& where = Place::current()) {
  const simt::WarpValues& values = emulator().exchange(lane_value(flag), where);
  std::uint32_t bits = 0;
  for (int lane = 0; lane < simt::warp_lanes; ++lane)
    bits |= static_cast<std::uint32_t>(value_of<bool>(values, lane)) << lane;
  return bits;
}

// --- Memory

template <class T, int n>
struct Group {
  T values[n];
  T& operator[](int i) { return values[i]; }
  const T& operator[](int i) const { return values[i]; }
};

// Elements [i, i + n) of an array of `count`, whose first is at `data`.
template <class T>
void check_access(const T* data, std::int64_t count, std::int64_t i, int n) {
  if (i < 0 || i + n > count) {
    emulator().fail(simt::FaultKind::out_of_bounds, "elements [" + std::to_string(i) + ", " +
                                                        std::to_string(i + n) + ") of " +
                                                        std::to_string(count));
  }
  const std::size_t unit = std::min<std::size_t>(16, sizeof(T) * static_cast<std::size_t>(n));
  if (reinterpret_cast<std::uintptr_t>(data + i) % unit != 0)
    emulator().fail(simt::FaultKind::misaligned,
                    std::to_string(unit) + " bytes at element " + std::to_string(i));
}

template <class T>
class Global {
 public:
  using Value = std::remove_const_t<T>;
  Global() = default;
  Global(T* data, std::int64_t count) : data_(data), count_(count) {}
  explicit Global(const TensorView& view) : Global(view.as<T>(), view.empty() ? 0 : view.count()) {}
  template <class U>
  requires(!std::is_same_v<T, U> && std::is_same_v<T, const U>) Global(const Global<U>& other)
      : data_(other.data_), count_(other.count_) {}

  T* data() const { return data_; }
  bool empty() const { return data_ == nullptr; }
  Value load(std::int64_t i) const { return *touched(i, 1, simt::Touch::read); }
  void store(std::int64_t i, Value value) const { *touched(i, 1, simt::Touch::write) = value; }
  template <int n>
  Group<Value, n> load_group(std::int64_t i) const {
    Group<Value, n> group;
    std::memcpy(static_cast<void*>(&group), touched(i, n, simt::Touch::read), sizeof group);
    return group;
  }
  template <int n>
  void store_group(std::int64_t i, const Group<Value, n>& group) const {
    std::memcpy(static_cast<void*>(touched(i, n, simt::Touch::write)), &group, sizeof group);
  }
  void atomic_add(std::int64_t i, Value value) const {
    *touched(i, 1, simt::Touch::atomic) += value;
  }
  void atomic_min(std::int64_t i, Value value) const {
    T* at = touched(i, 1, simt::Touch::atomic);
    *at = std::min(*at, value);
  }
  T* touched(std::int64_t i, int n, simt::Touch how) const {
    check_access(data_, count_, i, n);
    emulator().touch_global(data_ + i, sizeof(T), n, how);
    return data_ + i;
  }

 private:
  template <class U>
  friend class Global;
  T* data_ = nullptr;
  std::int64_t count_ = 0;
};

template <class T>
class Shared {
 public:
  Shared(std::int64_t byte_offset, std::int64_t count) : offset_(byte_offset), count_(count) {
    const auto end = byte_offset + count * static_cast<std::int64_t>(sizeof(T));
    if (byte_offset < 0 || end > emulator().shape().shared_bytes)
      emulator().fail(simt::FaultKind::out_of_bounds,
                      "an array ends at shared byte " + std::to_string(end));
  }
  T load(int i) const { return *touched(i, 1, simt::Touch::read); }
  void store(int i, T value) const { *touched(i, 1, simt::Touch::write) = value; }
  template <int n>
  Group<T, n> load_group(int i) const {
    Group<T, n> group;
    std::memcpy(static_cast<void*>(&group), touched(i, n, simt::Touch::read), sizeof group);
    return group;
  }
  template <int n>
  void store_group(int i, const Group<T, n>& group) const {
    std::memcpy(static_cast<void*>(touched(i, n, simt::Touch::write)), &group, sizeof group);
  }
  T* touched(int i, int n, simt::Touch how) const {
    T* data = reinterpret_cast<T*>(emulator().shared_memory() + offset_);
    check_access(data, count_, i, n);
    emulator().touch_shared(byte_of(i), sizeof(T), n, how);
    return data + i;
  }
  std::int64_t byte_of(int i) const { return offset_ + i * static_cast<std::int64_t>(sizeof(T)); }

 private:
  std::int64_t offset_;
  std::int64_t count_;
};

inline constexpr std::byte no_bytes[16] = {};

template <class T>
void copy_async16(const Shared<T>& to, int i, const Global<const T>& from, std::int64_t j,
                  bool wanted) {
  constexpr int n = 16 / static_cast<int>(sizeof(T));
  const auto* source = no_bytes;
  if (wanted) source = reinterpret_cast<const std::byte*>(from.touched(j, n, simt::Touch::read));
  T* target = to.touched(i, n, simt::Touch::write);
  emulator().start_copy({reinterpret_cast<std::byte*>(target), source, to.byte_of(i), sizeof(T)});
}
inline void commit_copies() { emulator().commit_copies(); }
template <int pending_groups>
void wait_copies() {
  emulator().wait_copies(pending_groups);
}

// --- Matrix fragments

using Fragment4 = Group<std::uint32_t, 4>;
using Fragment2 = Group<std::uint32_t, 2>;
using Sums4 = Group<float, 4>;

using Row8 = Group<bfloat16, 8>;

// The eight rows that lane i's eighth of the warp points at are matrix i / 8.
template <class Pick>
Fragment4 gather_matrices(const Shared<bfloat16>& from, int i, const Place& where, Pick pick) {
  const simt::WarpValues& rows =
      emulator().exchange(lane_value(from.template load_group<8>(i)), where);
  Fragment4 result{};
  for (int m = 0; m < 4; ++m) {
    const auto element = [&](int row, int column) {
      return std::uint32_t{value_of<Row8>(rows, 8 * m + row)[column].bits};
    };
    result[m] = pick(element);
  }
  return result;
}
inline Fragment4 load_matrices(const Shared<bfloat16>& from, int i,
                               const Place& where = Place::current()) {
  const int group = lane_index() / 4, pair = lane_index() % 4;
  return gather_matrices(from, i, where, [&](const auto& element) {
    return element(group, 2 * pair) | element(group, 2 * pair + 1) << 16;
  });
}
inline Fragment4 load_matrices_transposed(const Shared<bfloat16>& from, int i,
                                          const Place& where = Place::current()) {
  const int group = lane_index() / 4, pair = lane_index() % 4;
  return gather_matrices(from, i, where, [&](const auto& element) {
    return element(2 * pair, group) | element(2 * pair + 1, group) << 16;
  });
}

inline void multiply_add(Sums4& c, const Fragment4& a, const Fragment2& b,
                         const Place& where = Place::current()) {
  const simt::MmaOperands mine{{a[0], a[1], a[2], a[3]}, {b[0], b[1]}};
  const simt::WarpValues& values = emulator().exchange(lane_value(mine), where);
  const auto lanes = [&](int lane) { return value_of<simt::MmaOperands>(values, lane); };
  const int group = lane_index() / 4, pair = lane_index() % 4;
  for (int i = 0; i < 4; ++i)
    c[i] = simt::product(lanes, group + i / 2 * 8, 2 * pair + i % 2, c[i]);
}

// --- Numbers

inline int population_count(std::uint32_t bits) { return std::popcount(bits); }
inline bfloat16 narrow(float value) { return to_bfloat16(value); }
inline std::uint32_t pack2(float low, float high) {
  return std::uint32_t{narrow(low).bits} | std::uint32_t{narrow(high).bits} << 16;
}
inline float exp2_fast(float x) { return std::exp2(x); }

}  // namespace strata::cuda
