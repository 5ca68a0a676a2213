#pragma once
// The kernels of the host as kernels of a fake device: each op is launched on the stream of its
// call and carried out when the stream comes to it, with the memory that it touches declared. What
// of its arguments is not device memory is taken by value, as a launch does.

#include <memory>

#include "fake_cuda/fake_cuda.hpp"
#include "strata/kernels/kernels.hpp"

namespace strata::testing {

// Scratch sizes are those of `host`, which outlives them, as `fake` does.
std::unique_ptr<Kernels> make_streamed_kernels(FakeCuda& fake, Kernels& host);

FakeAccess access_of(const TensorView& view, Touch touch);

}  // namespace strata::testing
