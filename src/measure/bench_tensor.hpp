#pragma once
// A tensor in memory of its own on a device, for measurements to work on. Thread contract: one
// thread.

#include "strata/core/tensor_view.hpp"
#include "strata/device/device.hpp"

namespace strata {

enum class BenchValues : std::uint8_t {
  zeros,
  // In [-1, 1): a GPU draws less power, and runs faster, on values that are alike. f32 and bf16.
  random,
};

class BenchTensor {
 public:
  // Complete on return. Throws OutOfMemory.
  BenchTensor(Device& device, Stream& stream, DType dtype, Shape shape, BenchValues values);
  operator TensorView() const { return view_; }

 private:
  void fill_randomly(Device& device, Stream& stream);

  Slab slab_;
  TensorView view_;
};

}  // namespace strata
