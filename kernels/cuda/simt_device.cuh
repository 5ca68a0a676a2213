#pragma once
// simt.hpp on the GPU: thin names for CUDA's own things. Included by simt.hpp alone.

#include <cuda_bf16.h>

#include <cstdint>
#include <type_traits>

#include "strata/core/tensor_view.hpp"

#define STRATA_KERNEL(...) __global__ void __launch_bounds__(__VA_ARGS__)
#define STRATA_DEVICE __device__ __forceinline__
#define STRATA_UNROLL _Pragma("unroll")
#define STRATA_PARAMETER const __grid_constant__

namespace strata::cuda {

inline constexpr unsigned whole_warp = 0xffffffffu;

STRATA_DEVICE int thread_index() { return static_cast<int>(threadIdx.x); }
STRATA_DEVICE int block_threads() { return static_cast<int>(blockDim.x); }
STRATA_DEVICE std::int64_t block_x() { return blockIdx.x; }
STRATA_DEVICE std::int64_t block_y() { return blockIdx.y; }
STRATA_DEVICE std::int64_t grid_x() { return gridDim.x; }
STRATA_DEVICE int lane_index() { return static_cast<int>(threadIdx.x % 32); }
STRATA_DEVICE int warp_index() { return static_cast<int>(threadIdx.x / 32); }

STRATA_DEVICE void sync_threads() { __syncthreads(); }
STRATA_DEVICE void sync_warp() { __syncwarp(); }
template <class T>
STRATA_DEVICE T shuffle_xor(T value, int mask) {
  return __shfl_xor_sync(whole_warp, value, mask);
}
template <class T>
STRATA_DEVICE T shuffle_down(T value, int by) {
  return __shfl_down_sync(whole_warp, value, by);
}
template <class T>
STRATA_DEVICE T shuffle(T value, int lane) {
  return __shfl_sync(whole_warp, value, lane);
}
STRATA_DEVICE std::uint32_t ballot(bool flag) { return __ballot_sync(whole_warp, flag); }

// --- Memory

template <class T, int n>
struct Group {
  T values[n];
  __host__ __device__ T& operator[](int i) { return values[i]; }
  __host__ __device__ const T& operator[](int i) const { return values[i]; }
};

// A group as 32-bit registers, put together by hand: what a compiler makes of a union or a copy it
// may write element by element, and one access of 16 bytes becomes four of 4.
template <class T, int n>
struct GroupWords {
  static constexpr int in_word = 4 / static_cast<int>(sizeof(T));
  static constexpr int count = n / in_word;
  static constexpr int bits = 8 * static_cast<int>(sizeof(T));
  static_assert(in_word > 0 && count * in_word == n);
  using Bits = std::conditional_t<bits == 32, std::uint32_t,
                                  std::conditional_t<bits == 16, std::uint16_t, std::uint8_t>>;

  std::uint32_t words[count];

  STRATA_DEVICE void put(const Group<T, n>& group) {
    STRATA_UNROLL
    for (int i = 0; i < count; ++i) {
      words[i] = 0;
      STRATA_UNROLL
      for (int j = 0; j < in_word; ++j)
        words[i] |= std::uint32_t{__builtin_bit_cast(Bits, group[i * in_word + j])} << (j * bits);
    }
  }
  STRATA_DEVICE Group<T, n> get() const {
    Group<T, n> group;
    STRATA_UNROLL
    for (int i = 0; i < n; ++i) {
      const std::uint32_t word = words[i / in_word] >> (i % in_word * bits);
      group[i] = __builtin_bit_cast(T, static_cast<Bits>(word));
    }
    return group;
  }
};

template <int n, class T>
STRATA_DEVICE Group<std::remove_const_t<T>, n> load_words(const T* from) {
  GroupWords<std::remove_const_t<T>, n> group;
  constexpr int count = group.count;
  if constexpr (count % 4 == 0) {
    STRATA_UNROLL
    for (int i = 0; i < count; i += 4) {
      const uint4 word = reinterpret_cast<const uint4*>(from)[i / 4];
      group.words[i] = word.x;
      group.words[i + 1] = word.y;
      group.words[i + 2] = word.z;
      group.words[i + 3] = word.w;
    }
  } else if constexpr (count == 2) {
    const uint2 word = *reinterpret_cast<const uint2*>(from);
    group.words[0] = word.x;
    group.words[1] = word.y;
  } else {
    static_assert(count == 1);
    group.words[0] = *reinterpret_cast<const std::uint32_t*>(from);
  }
  return group.get();
}

// Written out, as the compiler takes a store of a uint4 apart and does not always join it again.
struct GlobalStore {
  STRATA_DEVICE static void one(void* to, std::uint32_t a) { *static_cast<std::uint32_t*>(to) = a; }
  STRATA_DEVICE static void two(void* to, std::uint32_t a, std::uint32_t b) {
    asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(to)), "r"(a),
                 "r"(b)
                 : "memory");
  }
  STRATA_DEVICE static void four(void* to, std::uint32_t a, std::uint32_t b, std::uint32_t c,
                                 std::uint32_t d) {
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)),
                 "r"(a), "r"(b), "r"(c), "r"(d)
                 : "memory");
  }
};

struct SharedStore {
  STRATA_DEVICE static std::uint32_t address(void* to) {
    return static_cast<std::uint32_t>(__cvta_generic_to_shared(to));
  }
  STRATA_DEVICE static void one(void* to, std::uint32_t a) { *static_cast<std::uint32_t*>(to) = a; }
  STRATA_DEVICE static void two(void* to, std::uint32_t a, std::uint32_t b) {
    asm volatile("st.shared.v2.u32 [%0], {%1, %2};" ::"r"(address(to)), "r"(a), "r"(b) : "memory");
  }
  STRATA_DEVICE static void four(void* to, std::uint32_t a, std::uint32_t b, std::uint32_t c,
                                 std::uint32_t d) {
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(address(to)), "r"(a), "r"(b),
                 "r"(c), "r"(d)
                 : "memory");
  }
};

template <class Store, class T, int n>
STRATA_DEVICE void store_words(T* to, const Group<T, n>& from) {
  GroupWords<T, n> group;
  group.put(from);
  constexpr int count = group.count;
  const auto& w = group.words;
  if constexpr (count % 4 == 0) {
    STRATA_UNROLL
    for (int i = 0; i < count; i += 4)
      Store::four(reinterpret_cast<uint4*>(to) + i / 4, w[i], w[i + 1], w[i + 2], w[i + 3]);
  } else if constexpr (count == 2) {
    Store::two(to, w[0], w[1]);
  } else {
    static_assert(count == 1);
    Store::one(to, w[0]);
  }
}

template <class T>
class Global {
 public:
  using Value = std::remove_const_t<T>;
  Global() = default;
  Global(T* data, std::int64_t) : data_(data) {}
  explicit Global(const TensorView& view) : data_(view.as<T>()) {}
  template <class U>
  requires(!std::is_same_v<T, U> && std::is_same_v<T, const U>) Global(const Global<U>& other)
      : data_(other.data_) {}

  T* data() const { return data_; }
  STRATA_DEVICE bool empty() const { return data_ == nullptr; }
  STRATA_DEVICE Value load(std::int64_t i) const { return data_[i]; }
  STRATA_DEVICE void store(std::int64_t i, Value value) const { data_[i] = value; }
  template <int n>
  STRATA_DEVICE Group<Value, n> load_group(std::int64_t i) const {
    return load_words<n>(data_ + i);
  }
  template <int n>
  STRATA_DEVICE void store_group(std::int64_t i, const Group<Value, n>& group) const {
    store_words<GlobalStore>(data_ + i, group);
  }
  STRATA_DEVICE void atomic_add(std::int64_t i, Value value) const { atomicAdd(data_ + i, value); }
  STRATA_DEVICE void atomic_min(std::int64_t i, Value value) const { atomicMin(data_ + i, value); }
  STRATA_DEVICE T* address(std::int64_t i) const { return data_ + i; }

 private:
  template <class U>
  friend class Global;
  T* data_ = nullptr;
};

// The block's shared memory, sized by the launch.
STRATA_DEVICE std::byte* shared_memory() {
  extern __shared__ uint4 strata_shared_memory[];
  return reinterpret_cast<std::byte*>(strata_shared_memory);
}

template <class T>
class Shared {
 public:
  STRATA_DEVICE Shared(std::int64_t byte_offset, std::int64_t)
      : data_(reinterpret_cast<T*>(shared_memory() + byte_offset)) {}

  STRATA_DEVICE T load(int i) const { return data_[i]; }
  STRATA_DEVICE void store(int i, T value) const { data_[i] = value; }
  template <int n>
  STRATA_DEVICE Group<T, n> load_group(int i) const {
    return load_words<n>(data_ + i);
  }
  template <int n>
  STRATA_DEVICE void store_group(int i, const Group<T, n>& group) const {
    store_words<SharedStore>(data_ + i, group);
  }
  STRATA_DEVICE std::uint32_t shared_address(int i) const {
    return static_cast<std::uint32_t>(__cvta_generic_to_shared(data_ + i));
  }

 private:
  T* data_;
};

// Zeros where the source is not wanted; it is not read then.
template <class T>
STRATA_DEVICE void copy_async16(const Shared<T>& to, int i, const Global<const T>& from,
                                std::int64_t j, bool wanted) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(to.shared_address(i)),
               "l"(from.address(wanted ? j : 0)), "r"(wanted ? 16 : 0)
               : "memory");
}
STRATA_DEVICE void commit_copies() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }
template <int pending_groups>
STRATA_DEVICE void wait_copies() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(pending_groups) : "memory");
}

// --- Matrix fragments

using Fragment4 = Group<std::uint32_t, 4>;
using Fragment2 = Group<std::uint32_t, 2>;
using Sums4 = Group<float, 4>;

STRATA_DEVICE Fragment4 load_matrices(const Shared<bfloat16>& from, int i) {
  Fragment4 m;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(from.shared_address(i))
               : "memory");
  return m;
}
STRATA_DEVICE Fragment4 load_matrices_transposed(const Shared<bfloat16>& from, int i) {
  Fragment4 m;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(from.shared_address(i))
               : "memory");
  return m;
}
STRATA_DEVICE void multiply_add(Sums4& c, const Fragment4& a, const Fragment2& b) {
  // volatile: it may not move into a branch that a part of the warp takes.
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// --- Numbers

STRATA_DEVICE int population_count(std::uint32_t bits) { return __popc(bits); }
// To nearest even, by the one instruction that there is for it.
STRATA_DEVICE bfloat16 narrow(float value) {
  return {__bfloat16_as_ushort(__float2bfloat16_rn(value))};
}
STRATA_DEVICE std::uint32_t pack2(float low, float high) {
  std::uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
STRATA_DEVICE float exp2_fast(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

}  // namespace strata::cuda
