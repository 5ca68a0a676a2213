#pragma once
// Who touched memory last, and when, one cell an element's first byte. Two accesses of one element
// by two threads of a launch are a race unless both read, both are atomic, or a barrier that both
// threads took part in lies between. Time is a counter that every barrier advances, so a barrier
// with a time above an access's stamp came after it.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace strata::simt {

enum class Touch : std::uint8_t { read, write, atomic };

// Who touches: a thread of the launch, and when it last met others.
struct Toucher {
  std::uint32_t thread = 0;  // within the launch, block by block
  std::uint32_t block_threads = 1;
  std::uint32_t launch_time = 1;  // when the launch began: what was before is no concern of its
  std::uint32_t block_time = 0;   // of the last barrier of its block
  std::uint32_t warp_time = 0;    // of the last barrier of its warp
  std::uint32_t now = 1;

  std::uint32_t block() const { return thread / block_threads; }
  std::uint32_t warp() const { return thread / 32; }  // blocks are whole warps
};

class ShadowCell {
 public:
  // Records the access. False: it races with an earlier one.
  bool touch(const Toucher& by, Touch how);
  bool is_written() const { return write_stamp_ != 0; }

 private:
  enum Readers : std::uint8_t { one, lanes, warps, blocks };  // how far apart its readers are

  bool ordered_after(const Toucher& by, std::uint32_t thread, std::uint32_t stamp,
                     Readers readers) const;
  bool may_follow_write(const Toucher& by, Touch how) const;
  bool may_follow_reads(const Toucher& by) const;
  void note_read(const Toucher& by);

  std::uint32_t write_stamp_ = 0, writer_ = 0;  // stamp 0: never
  std::uint32_t read_stamp_ = 0, reader_ = 0;
  Readers readers_ = one;
  bool is_atomic_ = false;  // the last write
};

// Cells of global memory, by address, made when first touched and kept for later launches.
class GlobalShadow {
 public:
  ShadowCell& at(const void* address);
  // Between launches: gives memory back where much was touched.
  void trim();

 private:
  static constexpr std::size_t page_cells = 4096, pages_max = 2048;
  using Page = std::unique_ptr<ShadowCell[]>;
  std::unordered_map<std::uintptr_t, Page> pages_;
  std::uintptr_t last_number_ = 0;
  ShadowCell* last_ = nullptr;
};

}  // namespace strata::simt
