#include "fake_cuda/fake_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "strata/core/error.hpp"

namespace strata::testing {

void* FakeMemory::allocate(std::uint64_t bytes, std::uint64_t limit_bytes) {
  if (bytes > limit_bytes - used_bytes()) return nullptr;
  Range range{bytes, make(bytes)};
  std::memset(range.owned.get(), 0xcd, bytes);
  std::byte* const data = range.owned.get();
  device_.emplace(data, std::move(range));
  close(data, bytes);
  return data;
}

// Of its own pages where they are to be closed.
std::shared_ptr<std::byte> FakeMemory::make(std::uint64_t bytes) const {
  if (host_touch_ == HostTouch::allowed)
    return {new std::byte[bytes], std::default_delete<std::byte[]>()};
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  check(data == MAP_FAILED ? -1 : 0, "map", "memory of a fake device");
  return {static_cast<std::byte*>(data), [bytes](std::byte* begin) { ::munmap(begin, bytes); }};
}

void FakeMemory::protect(const std::byte* data, std::uint64_t bytes, bool is_open) {
  if (host_touch_ == HostTouch::allowed || !contains(device_, data, bytes)) return;
  static const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<std::uintptr_t>(data) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(data) + bytes;
  check(::mprotect(reinterpret_cast<void*>(first), end - first,
                   is_open ? PROT_READ | PROT_WRITE : PROT_NONE),
        "protect", "memory of a fake device");
}

bool FakeMemory::register_host(void* data, std::uint64_t bytes) {
  auto* begin = static_cast<std::byte*>(data);
  for (const auto& [other, range] : host_)
    if (begin < other + range.bytes && other < begin + bytes) return false;
  host_[begin].bytes = bytes;
  return true;
}

CudaPointer FakeMemory::kind_of(const void* data, std::uint64_t bytes) const {
  const auto* begin = static_cast<const std::byte*>(data);
  if (contains(device_, begin, bytes)) return CudaPointer::device;
  return contains(host_, begin, bytes) ? CudaPointer::pinned : CudaPointer::unregistered;
}

std::vector<std::uint64_t> FakeMemory::registrations() const {
  std::vector<std::uint64_t> bytes;
  for (const auto& [data, range] : host_) bytes.push_back(range.bytes);
  return bytes;
}

std::uint64_t FakeMemory::used(const Ranges& ranges) {
  std::uint64_t bytes = 0;
  for (const auto& [data, range] : ranges) bytes += range.bytes;
  return bytes;
}

bool FakeMemory::contains(const Ranges& ranges, const std::byte* data, std::uint64_t bytes) {
  auto after = ranges.upper_bound(const_cast<std::byte*>(data));
  if (after == ranges.begin()) return false;
  --after;
  return data + bytes <= after->first + after->second.bytes;
}

}  // namespace strata::testing
