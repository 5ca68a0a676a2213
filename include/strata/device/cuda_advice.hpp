#pragma once
// What to do about an error of the CUDA runtime, by its number: for messages of the device and of
// the kernels alike. Thread contract: a function of its argument.

#include <string_view>

namespace strata {

// "; the NVIDIA driver is missing or older than this build's CUDA", or nothing where we know of
// nothing.
std::string_view cuda_advice(int error_number);

// The device reports what a kernel or an earlier copy did wrong at whatever call comes next: such
// an error is not of the call that returned it.
bool is_late_cuda_error(int error_number);

}  // namespace strata
