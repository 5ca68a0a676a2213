#pragma once
// One call of a kernel whose operands are in ordinary memory, on a device's: all are copied there,
// each between guards and as far from an aligned address as it was, and what the call may write is
// copied back. Whatever else the call has changed is found, and is an Error.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "strata/core/tensor_view.hpp"
#include "strata/device/device.hpp"

namespace strata::testing {

// Where operands lie on the device: together in one allocation, of which all is looked at after the
// call; or each in one of its own that ends where it ends, for tools that watch every access.
enum class Operands : std::uint8_t { together, apart };

// Memory for one call at a time, kept for the next, and the stream that calls run on. One thread.
class StagingArena {
 public:
  explicit StagingArena(Device& device, Operands operands = Operands::together)
      : device_(device), operands_(operands), stream_(device.make_stream("staged calls")) {}

  Stream& stream() { return *stream_; }

 private:
  friend class StagedCall;
  // At least so many bytes of each.
  void reserve(std::uint64_t bytes);

  Device& device_;
  const Operands operands_;
  const std::unique_ptr<Stream> stream_;
  Slab on_device_;
  Slab before_, after_;  // pinned: what the device has when the call begins, and when it has ended
};

class StagedCall {
 public:
  // `op` and the names of operands, for errors, outlive the call.
  StagedCall(StagingArena& arena, std::string_view op) : arena_(arena), op_(op) {}

  // Operands may overlap, be empty and have other values behind the view afterwards: from run() on
  // it names the device's copy.
  StagedCall& reads(std::string_view name, TensorView& view);
  StagedCall& writes(std::string_view name, TensorView& view);
  StagedCall& scratch(std::span<std::byte>& bytes);

  // Copies, calls, waits and copies back.
  template <typename Kernel>
  void run(Kernel kernel) {
    enter();
    kernel();
    leave();
  }

 private:
  enum class Touch : std::uint8_t { reads, writes };
  struct Operand {
    std::string_view name;
    std::byte* host;
    std::uint64_t bytes;
    Touch touch;
  };
  // What operands cover without a gap.
  struct Region {
    std::byte *begin, *end;    // of ordinary memory
    std::uint64_t offset = 0;  // within the arena's memory
    Slab own = {};             // on the device, where operands lie apart

    std::uint64_t bytes() const { return static_cast<std::uint64_t>(end - begin); }
    std::uint64_t phase() const;  // from an aligned address
  };

  void add(std::string_view name, TensorView& view, Touch touch);
  void enter();
  void leave();
  void find_regions();
  std::uint64_t place_regions();
  void fill_image();
  void copy_in();
  void copy_out();
  std::byte* on_device(const Region& region) const;
  const Region& region_of(const Operand& operand) const;
  std::uint64_t offset_of(const Operand& operand) const;
  [[noreturn]] void report(std::uint64_t offset) const;

  StagingArena& arena_;
  std::string_view op_;
  std::vector<Operand> operands_;
  std::vector<TensorView*> views_;  // of the operands, in their order; null: the scratch
  std::span<std::byte>* scratch_ = nullptr;
  std::vector<Region> regions_;
  std::uint64_t bytes_ = 0;
};

}  // namespace strata::testing
