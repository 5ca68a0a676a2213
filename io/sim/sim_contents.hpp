#pragma once
// SimContents are a simulated file's bytes and length. Pages are shared between copies until one
// of them is written, so a copy is cheap.
//
// Thread contract: none of its own; the SimDisk guards it.

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>

namespace strata {

class SimContents {
 public:
  std::uint64_t size() const { return size_; }
  // Shrinking forgets what lies beyond: it reads as zeros when the file grows again.
  void resize(std::uint64_t bytes);
  // Bytes never written are zeros, also those beyond the end.
  void read(std::uint64_t offset, std::span<std::byte> target) const;
  // Does not change the size.
  void write(std::uint64_t offset, std::span<const std::byte> source);

 private:
  static constexpr std::uint64_t page_bytes = 64 * 1024;
  using Page = std::array<std::byte, page_bytes>;

  Page& writable_page(std::uint64_t index);

  std::uint64_t size_ = 0;
  std::map<std::uint64_t, std::shared_ptr<Page>> pages_;  // by index; a missing page is zeros
};

}  // namespace strata
