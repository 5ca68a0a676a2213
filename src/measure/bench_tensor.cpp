#include "bench_tensor.hpp"

#include <algorithm>
#include <cstddef>
#include <random>
#include <vector>

namespace strata {
namespace {

// A prime, so that the rows of a matrix differ.
constexpr std::int64_t period = 65537;

std::vector<std::byte> random_elements(DType dtype, std::int64_t count) {
  ensure(dtype == DType::f32 || dtype == DType::bf16);
  std::vector<std::byte> bytes(static_cast<std::size_t>(storage_bytes(dtype, count)));
  const TensorView view{bytes.data(), dtype, {count}};
  std::minstd_rand next(1);
  for (std::int64_t i = 0; i < count; ++i) {
    const float value = static_cast<float>(next()) / static_cast<float>(next.max() / 2) - 1;
    if (dtype == DType::f32) view.as<float>()[i] = value;
    if (dtype == DType::bf16) view.as<bfloat16>()[i] = to_bfloat16(value);
  }
  return bytes;
}

}  // namespace

BenchTensor::BenchTensor(Device& device, Stream& stream, DType dtype, Shape shape,
                         BenchValues values)
    : slab_(device.allocate(static_cast<std::uint64_t>(storage_bytes(dtype, shape.count())))),
      view_{slab_.data(), dtype, shape} {
  if (values == BenchValues::random) fill_randomly(device, stream);
}

// The first period from the host; then all that is there is copied behind itself.
void BenchTensor::fill_randomly(Device& device, Stream& stream) {
  const auto first = random_elements(view_.dtype, std::min(view_.count(), period));
  device.copy(slab_.data(), first.data(), first.size(), CopyKind::host_to_device, stream);
  for (std::uint64_t done = first.size(); done < slab_.bytes(); done *= 2)
    device.copy(slab_.data() + done, slab_.data(), std::min(done, slab_.bytes() - done),
                CopyKind::device_to_device, stream);
  stream.synchronize();
}

}  // namespace strata
