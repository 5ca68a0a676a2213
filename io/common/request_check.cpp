#include "io/common/request_check.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdint>
#include <limits>

#include "io/common/piece.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

constexpr std::uint64_t offset_max = std::numeric_limits<std::int64_t>::max();
constexpr std::uint64_t chunk_bytes_min = 4096;
constexpr std::uint64_t chunk_bytes_max = 1ull
                                          << 30;  // one transfer's length is 32 bits in the ring

constexpr double stall_seconds_max = 1e6;

bool misaligned(const IoRequest& request, std::uint64_t alignment) {
  const auto address = reinterpret_cast<std::uintptr_t>(request.data);
  return (request.offset % alignment | request.bytes % alignment | address % alignment) != 0;
}

std::string misalignment(const IoRequest& request, std::uint64_t alignment) {
  return fmt::format("offset, length and address ({}) must be multiples of {} for O_DIRECT",
                     static_cast<const void*>(request.data), alignment);
}

std::string not_open(const IoRequest& request) {
  return fmt::format("cannot {} {} bytes at offset {} of I/O file {}: the file is not open",
                     request.op == IoOp::read ? "read" : "write", request.bytes, request.offset,
                     request.file.value);
}

void check_range(std::string_view name, std::uint64_t value, std::uint64_t low,
                 std::uint64_t high) {
  if (value >= low && value <= high) return;
  throw ConfigError(
      fmt::format("I/O option {} is {}: it must be from {} to {}", name, value, low, high));
}

}  // namespace

IoResult refusal(const IoRequest& request, const OpenFile* file) {
  if (file == nullptr) return {0, EBADF, not_open(request)};
  const auto refuse = [&](int error_number, const std::string& reason) {
    return IoResult{0, error_number, reason};
  };
  if (request.op == IoOp::write && !file->writable())
    return refuse(EBADF, "the file was opened read-only");
  if (request.bytes > 0 && request.data == nullptr)
    return refuse(EFAULT, "there is no memory behind it");
  if (request.bytes > offset_max || request.offset > offset_max - request.bytes) {
    return refuse(EOVERFLOW, "no file is that long");
  }
  if (misaligned(request, file->alignment()))
    return refuse(EINVAL, misalignment(request, file->alignment()));
  return {};
}

void check_options(const IoOptions& options) {
  check_range("queue_depth", static_cast<std::uint64_t>(std::max(options.queue_depth, 0)), 1, 4096);
  check_range("num_threads", static_cast<std::uint64_t>(std::max(options.num_threads, 0)), 1, 256);
  check_range("chunk_bytes", options.chunk_bytes, chunk_bytes_min, chunk_bytes_max);
  if (options.stall_seconds > 0 && options.stall_seconds <= stall_seconds_max) return;
  throw ConfigError(fmt::format("I/O option stall_seconds is {}: it must be above 0 and at most {}",
                                options.stall_seconds, stall_seconds_max));
}

}  // namespace strata
