#include "contract/kernels/kernels_harness.hpp"

#include <cmath>
#include <cstring>

#include "strata/core/bytes.hpp"

namespace strata::testing {
namespace {

double rounding_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 1e-13;
    case DType::f32:
      return 4e-6;  // A few hundred roundings of fp32, most of which cancel.
    default:
      return 0x1p-8;  // bf16 keeps 8 bits.
  }
}

double typical_size(const Tensor& tensor) {
  double squares = 0;
  for (std::int64_t i = 0; i < tensor.count(); ++i) squares += tensor.at(i) * tensor.at(i);
  return std::sqrt(squares / static_cast<double>(tensor.count()));
}

}  // namespace

Tensor::Tensor(DType dtype, Shape shape, std::int64_t offset) {
  view_ = {nullptr, dtype, shape};
  const auto size = static_cast<std::int64_t>(sizeof(std::max_align_t));
  const std::int64_t offset_bytes = offset * dtype_bytes(dtype);
  storage_.resize(static_cast<std::size_t>(ceil_div(offset_bytes + view_.bytes(), size) + 1));
  std::memset(storage_.data(), 0xff, storage_.size() * sizeof(std::max_align_t));
  view_.data = reinterpret_cast<std::byte*>(storage_.data()) + offset_bytes;
}

double Tensor::at(std::int64_t i) const {
  switch (view_.dtype) {
    case DType::f64:
      return view_.as<double>()[i];
    case DType::f32:
      return static_cast<double>(view_.as<float>()[i]);
    case DType::bf16:
      return static_cast<double>(to_float(view_.as<bfloat16>()[i]));
    default:
      return view_.as<std::int32_t>()[i];
  }
}

void Tensor::set(std::int64_t i, double value) {
  switch (view_.dtype) {
    case DType::f64:
      view_.as<double>()[i] = value;
      break;
    case DType::f32:
      view_.as<float>()[i] = static_cast<float>(value);
      break;
    case DType::bf16:
      view_.as<bfloat16>()[i] = to_bfloat16(static_cast<float>(value));
      break;
    default:
      view_.as<std::int32_t>()[i] = static_cast<std::int32_t>(value);
      break;
  }
}

std::string Tensor::bits() const {
  return {static_cast<const char*>(view_.data), static_cast<std::size_t>(view_.bytes())};
}

Tensor zeros(DType dtype, Shape shape) {
  Tensor result(dtype, shape);
  std::memset(result.view().data, 0, static_cast<std::size_t>(result.view().bytes()));
  return result;
}

Tensor random_normal(PhiloxStream& random, DType dtype, Shape shape, double deviation) {
  Tensor result(dtype, shape);
  for (std::int64_t i = 0; i < result.count(); ++i) result.set(i, deviation * random.next_normal());
  return result;
}

Tensor integers(const std::vector<std::int32_t>& values) {
  Tensor result(DType::i32, {static_cast<std::int64_t>(values.size())});
  for (std::size_t i = 0; i < values.size(); ++i)
    result.set(static_cast<std::int64_t>(i), values[i]);
  return result;
}

Tensor copy_of(const Tensor& tensor) { return converted(tensor, tensor.view().dtype); }

Tensor converted(const Tensor& tensor, DType dtype) {
  Tensor result(dtype, tensor.view().shape);
  for (std::int64_t i = 0; i < tensor.count(); ++i) result.set(i, tensor.at(i));
  return result;
}

Stream& host_stream() {
  static const auto stream = make_host_device({})->make_stream("kernels");
  return *stream;
}

void expect_close(const Tensor& actual, const Tensor& expected, const std::string& what) {
  expect_close(actual, expected, rounding_of(actual.view().dtype), what);
}

void expect_close(const Tensor& actual, const Tensor& expected, double tolerance,
                  const std::string& what) {
  ASSERT_EQ(actual.count(), expected.count()) << what;
  const double typical = typical_size(expected);
  for (std::int64_t i = 0; i < actual.count(); ++i) {
    ASSERT_NEAR(actual.at(i), expected.at(i),
                tolerance * (std::abs(expected.at(i)) + typical) + 1e-30)
        << what << ", element " << i << " of " << to_string(actual.view().shape);
  }
}

std::string case_name(const ::testing::TestParamInfo<std::tuple<Implementation, DType>>& info) {
  return std::get<0>(info.param).name + "_" + std::string(dtype_name(std::get<1>(info.param)));
}

}  // namespace strata::testing
