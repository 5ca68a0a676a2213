#pragma once
// A TensorView is a typed, shaped window onto memory somebody else owns: row-major, contiguous, at
// most four dimensions. Copying one copies no elements. The memory may be device memory: only code
// for that device may touch it.

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "strata/core/block_q8.hpp"
#include "strata/core/dtype.hpp"
#include "strata/core/error.hpp"

namespace strata {

struct Shape {
  static constexpr int max_rank = 4;
  std::array<std::int64_t, max_rank> dims{};
  int rank = 0;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> sizes) {
    ensure(sizes.size() <= static_cast<std::size_t>(max_rank));
    for (std::int64_t size : sizes) dims[static_cast<std::size_t>(rank++)] = size;
  }
  std::int64_t operator[](int axis) const { return dims[static_cast<std::size_t>(axis)]; }
  std::int64_t count() const {
    std::int64_t product = 1;
    for (int axis = 0; axis < rank; ++axis) product *= (*this)[axis];
    return product;
  }
  bool operator==(const Shape&) const = default;
};
std::string to_string(const Shape& shape);  // "[49152, 576]"

struct TensorView {
  void* data = nullptr;
  DType dtype = DType::f32;
  Shape shape;

  std::int64_t count() const { return shape.count(); }
  std::int64_t bytes() const { return storage_bytes(dtype, count()); }
  bool empty() const { return data == nullptr; }
  std::int64_t dim(int axis) const { return shape[axis]; }

  template <typename T>
  T* as() const {
    return static_cast<T*>(data);
  }

  // The same memory under another shape of as many elements.
  TensorView reshaped(Shape other) const {
    ensure(other.count() == count());
    return {data, dtype, other};
  }
  // `shape.count()` elements from element `offset` of the flattened view. A q8 region has no parts.
  TensorView slice(std::int64_t offset, Shape part) const {
    ensure(offset >= 0 && offset + part.count() <= count() && dtype != DType::q8);
    return {static_cast<std::byte*>(data) + offset * dtype_bytes(dtype), dtype, part};
  }
};

}  // namespace strata
