#pragma once
// A BufferTable keeps which memory is registered with a ring, and finds the entry a transfer may
// name. Memory registered anew replaces what overlaps it: the old pages may be gone.
//
// Thread contract: the ring's thread.

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "io/uring/ring.hpp"

namespace strata {

class BufferTable {
 public:
  explicit BufferTable(Ring& ring);

  void add(std::span<std::byte> memory);
  void remove(std::span<const std::byte> memory);  // every entry that overlaps it
  // The entry that covers the memory whole, or -1.
  int find(const std::byte* data, std::uint64_t bytes) const;
  // "2 registered buffers (1.00 GiB)", or why there are none.
  std::string describe() const;

 private:
  struct Entry {
    std::span<std::byte> memory;
    unsigned index = 0;
  };
  using Entries = std::map<const std::byte*, Entry>;  // by end address
  bool add_part(std::span<std::byte> memory);
  void note_failure(int error_number, std::uint64_t bytes);

  Ring& ring_;
  Entries entries_;
  std::vector<unsigned> free_;
  std::string note_;
};

}  // namespace strata
