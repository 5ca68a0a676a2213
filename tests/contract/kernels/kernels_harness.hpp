#pragma once
// What the kernel tests share: owned tensors, the implementations under test, and closeness by
// storage type.

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "strata/core/philox.hpp"
#include "strata/core/tensor_view.hpp"
#include "strata/device/device.hpp"
#include "strata/kernels/kernels.hpp"

namespace strata::testing {

// An owned tensor whose first element lies `offset` elements past an aligned address. Filled with
// 0xff bytes (NaN), so that an element an op forgets to write is found.
class Tensor {
 public:
  Tensor(DType dtype, Shape shape, std::int64_t offset = 0);

  TensorView view() const { return view_; }
  operator TensorView() const { return view_; }
  double at(std::int64_t i) const;
  void set(std::int64_t i, double value);
  std::int64_t count() const { return view_.count(); }
  std::string bits() const;  // The elements' bytes, to compare exactly.

 private:
  std::vector<std::max_align_t> storage_;
  TensorView view_;
};

Tensor zeros(DType dtype, Shape shape);
Tensor random_normal(PhiloxStream& random, DType dtype, Shape shape, double deviation = 1);
Tensor integers(const std::vector<std::int32_t>& values);
Tensor copy_of(const Tensor& tensor);
Tensor converted(const Tensor& tensor, DType dtype);

// A host stream: work is complete on return, so there is nothing to do.
Stream& host_stream();

class Scratch {
 public:
  explicit Scratch(std::uint64_t bytes) : bytes_(bytes + 1) {}
  std::span<std::byte> span() { return std::span(bytes_).subspan(1); }  // Misaligned on purpose.

 private:
  std::vector<std::byte> bytes_;
};

// |actual - expected| within the storage type's rounding, relative to the element and to the
// tensor's typical size.
void expect_close(const Tensor& actual, const Tensor& expected, const std::string& what);
// Likewise, for a tensor whose storage is finer than that of what it was computed from.
void expect_close(const Tensor& actual, const Tensor& expected, double tolerance,
                  const std::string& what);

struct Implementation {
  std::string name;
  std::function<std::unique_ptr<Kernels>()> make;
};
// Which those are depends on the executable: implementations.cpp,
// simt/emulated_implementations.cpp,
// ../../gpu/gpu_implementations.cpp.
std::vector<Implementation> implementations();

// One implementation with one storage type, held against `ref` in f64.
class KernelsContract : public ::testing::TestWithParam<std::tuple<Implementation, DType>> {
 protected:
  void SetUp() override { kernels_ = std::get<0>(GetParam()).make(); }
  DType dtype() const { return std::get<1>(GetParam()); }
  Kernels& kernels() { return *kernels_; }
  Kernels& oracle() { return *oracle_; }
  Stream& stream() { return host_stream(); }

 private:
  std::unique_ptr<Kernels> kernels_;  // not by the constructor, which runs for skipped tests too
  std::unique_ptr<Kernels> oracle_ = make_ref_kernels();
};

inline auto every_case() {
  return ::testing::Combine(::testing::ValuesIn(implementations()),
                            ::testing::Values(DType::f32, DType::bf16));
}
std::string case_name(const ::testing::TestParamInfo<std::tuple<Implementation, DType>>& info);

// What kernels store activations and weights in.
constexpr DType storages[] = {DType::f32, DType::bf16};

// The same values from element `offset` of a buffer on: operands start anywhere.
inline Tensor placed(const Tensor& source, std::int64_t offset) {
  Tensor result(source.view().dtype, source.view().shape, offset);
  for (std::int64_t i = 0; i < source.count(); ++i) result.set(i, source.at(i));
  return result;
}

}  // namespace strata::testing
