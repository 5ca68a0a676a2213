#include "device/host_memory.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

constexpr std::uint64_t huge_page = 2 * MiB;

void unmap(std::byte* data, std::uint64_t bytes) noexcept { ::munmap(data, bytes); }

}  // namespace

Slab map_host_memory(std::uint64_t bytes, std::string_view what) {
  if (bytes == 0) return {};
  const std::uint64_t size = align_up(bytes, 4096);
  const std::uint64_t reserve = size + huge_page;
  void* raw = ::mmap(nullptr, reserve, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (raw == MAP_FAILED) throw OutOfMemory(what, bytes, 0, std::strerror(errno));
  auto* begin = static_cast<std::byte*>(raw);
  auto* aligned =
      reinterpret_cast<std::byte*>(align_up(reinterpret_cast<std::uintptr_t>(begin), huge_page));
  const auto head = static_cast<std::uint64_t>(aligned - begin);
  if (head > 0) ::munmap(begin, head);
  const std::uint64_t tail = reserve - head - size;
  if (tail > 0) ::munmap(aligned + size, tail);
  ::madvise(aligned, size, MADV_HUGEPAGE);  // Advice only: refusal costs speed, not correctness.
  return {aligned, size, unmap};
}

}  // namespace strata
