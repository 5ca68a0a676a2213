#pragma once
// A MemoryList is the memory that is registered with an engine. Memory added anew replaces what
// overlaps it.
//
// Thread contract: none of its own; its owner guards it.

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace strata {

class MemoryList {
 public:
  void add(std::span<std::byte> memory) {
    remove(memory);
    list_.push_back(memory);
  }
  void remove(std::span<const std::byte> memory) {
    std::erase_if(list_, [&](std::span<std::byte> one) {
      return one.data() < memory.data() + memory.size() && memory.data() < one.data() + one.size();
    });
  }
  const std::vector<std::span<std::byte>>& all() const { return list_; }

 private:
  std::vector<std::span<std::byte>> list_;
};

}  // namespace strata
