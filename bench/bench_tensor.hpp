#pragma once
// What the kernel benchmarks share: tensors on 2 MiB pages where the system grants them, as the
// engine's own memory is, and a stream for kernels that are complete on return.

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "kernels/ref/doubles.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/clock.hpp"
#include "strata/core/tensor_view.hpp"
#include "strata/device/device.hpp"

namespace strata::bench {

inline Stream& host_stream() {
  static const auto stream = make_host_device({})->make_stream("bench");
  return *stream;
}

class Tensor {
 public:
  // Elements are value, value + 0.001 ... and repeat after 1009; integers and q8 are zero.
  Tensor(DType dtype, Shape shape, double value = 0) {
    view_ = {nullptr, dtype, shape};
    const std::uint64_t bytes = align_up(static_cast<std::uint64_t>(view_.bytes()), 2 * MiB);
    data_.reset(std::aligned_alloc(2 * MiB, bytes));
    madvise(data_.get(), bytes, MADV_HUGEPAGE);
    std::memset(data_.get(), 0, bytes);
    view_.data = data_.get();
    const bool is_real = dtype == DType::f64 || dtype == DType::f32 || dtype == DType::bf16;
    for (std::int64_t i = 0; is_real && i < view_.count(); ++i)
      ref::set_element(view_, i, value + 1e-3 * static_cast<double>(i % 1009));
  }
  operator TensorView() const { return view_; }
  TensorView view() const { return view_; }
  template <typename T>
  T* as() const {
    return view_.as<T>();
  }

 private:
  struct Free {
    void operator()(void* data) const { std::free(data); }
  };
  std::unique_ptr<void, Free> data_;
  TensorView view_;
};

template <typename F>
double timed(F f) {
  const std::int64_t begin = now_ns();
  f();
  return seconds(now_ns() - begin);
}

}  // namespace strata::bench
