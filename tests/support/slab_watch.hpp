#pragma once
// Knows where a run's memory tiers lie, and so how much of any region of theirs is backed by
// memory.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "strata/core/error.hpp"
#include "strata/device/device.hpp"
#include "strata/plan/plan.hpp"

namespace strata::testing {

// The slabs of a run's memory tiers, while the run has them. One thread.
class SlabWatch {
 public:
  // A device that shows its slabs to this watch, which outlives it.
  std::unique_ptr<Device> watch(std::unique_ptr<Device> device) {
    return std::make_unique<Watched>(std::move(device), *this);
  }

  // Of the region's bytes those that were touched, as pages tell.
  std::uint64_t resident_bytes(const Region& region) const {
    static const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    std::byte* const slab = slabs_.at(static_cast<std::size_t>(region.tier));
    const std::uint64_t first = region.offset / page * page;
    std::vector<unsigned char> pages((region.end() - first + page - 1) / page);
    check(::mincore(slab + first, region.end() - first, pages.data()), "count the pages of",
          "a slab");
    std::uint64_t bytes = 0;
    for (std::uint64_t i = 0; i < pages.size(); ++i)
      if ((pages[i] & 1) != 0)
        bytes += std::min(region.end(), first + (i + 1) * page) -
                 std::max(region.offset, first + i * page);
    return bytes;
  }

 private:
  class Watched : public Device {
   public:
    Watched(std::unique_ptr<Device> real, SlabWatch& watch)
        : real_(std::move(real)), watch_(watch) {}
    DeviceInfo info() const override { return real_->info(); }
    std::unique_ptr<Stream> make_stream(std::string_view name) override {
      return real_->make_stream(name);
    }
    std::unique_ptr<Event> make_event() override { return real_->make_event(); }
    Slab allocate(std::uint64_t bytes) override {
      return noted(Tier::device, real_->allocate(bytes));
    }
    Slab allocate_pinned(std::uint64_t bytes) override {
      return noted(Tier::host, real_->allocate_pinned(bytes));
    }
    void copy(std::byte* target, const std::byte* source, std::uint64_t bytes, CopyKind kind,
              Stream& stream) override {
      real_->copy(target, source, bytes, kind, stream);
    }
    void fill(std::byte* target, std::uint64_t bytes, std::byte value, Stream& stream) override {
      real_->fill(target, bytes, value, stream);
    }

   private:
    // Each tier is one slab.
    Slab noted(Tier tier, Slab slab) {
      std::byte*& place = watch_.slabs_[static_cast<std::size_t>(tier)];
      ensure(place == nullptr);
      place = slab.data();
      return slab;
    }
    const std::unique_ptr<Device> real_;
    SlabWatch& watch_;
  };

  std::array<std::byte*, 2> slabs_{};  // device, host
};

}  // namespace strata::testing
