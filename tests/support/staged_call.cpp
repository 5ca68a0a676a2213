#include "support/staged_call.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"

namespace strata::testing {
namespace {

constexpr std::uint64_t guard_bytes = 512;
constexpr std::uint64_t alignment = 256;
constexpr int guard_value = 0xa5;

}  // namespace

void StagingArena::reserve(std::uint64_t bytes) {
  if (bytes <= before_.bytes()) return;
  stream_->synchronize();
  const std::uint64_t wanted = bytes + bytes / 2;
  on_device_ = {};
  before_ = {};
  after_ = {};
  if (operands_ == Operands::together) on_device_ = device_.allocate(wanted);
  before_ = device_.allocate_pinned(wanted);
  after_ = device_.allocate_pinned(wanted);
}

StagedCall& StagedCall::reads(std::string_view name, TensorView& view) {
  add(name, view, Touch::reads);
  return *this;
}

StagedCall& StagedCall::writes(std::string_view name, TensorView& view) {
  add(name, view, Touch::writes);
  return *this;
}

StagedCall& StagedCall::scratch(std::span<std::byte>& bytes) {
  ensure(scratch_ == nullptr);
  scratch_ = &bytes;
  if (bytes.empty()) return *this;
  operands_.push_back({"scratch", bytes.data(), bytes.size(), Touch::writes});
  views_.push_back(nullptr);
  return *this;
}

void StagedCall::add(std::string_view name, TensorView& view, Touch touch) {
  if (view.empty()) return;
  operands_.push_back(
      {name, view.as<std::byte>(), static_cast<std::uint64_t>(view.bytes()), touch});
  views_.push_back(&view);
}

void StagedCall::enter() {
  find_regions();
  bytes_ = place_regions();
  arena_.device_.use_on_this_thread();
  arena_.reserve(bytes_);
  fill_image();
  copy_in();
  for (std::size_t i = 0; i < operands_.size(); ++i) {
    const Region& region = region_of(operands_[i]);
    std::byte* const data = on_device(region) + (operands_[i].host - region.begin);
    if (views_[i] != nullptr)
      views_[i]->data = data;
    else
      *scratch_ = {data, scratch_->size()};
  }
}

void StagedCall::leave() {
  copy_out();
  Slab &before = arena_.before_, &after = arena_.after_;
  for (const Operand& operand : operands_) {
    if (operand.touch == Touch::reads) continue;
    const std::uint64_t offset = offset_of(operand);
    std::memcpy(operand.host, after.data() + offset, operand.bytes);
    std::memcpy(before.data() + offset, after.data() + offset, operand.bytes);
  }
  if (std::memcmp(before.data(), after.data(), bytes_) == 0) return;
  const auto differs = std::mismatch(before.data(), before.data() + bytes_, after.data()).first;
  report(static_cast<std::uint64_t>(differs - before.data()));
}

void StagedCall::find_regions() {
  std::vector<const Operand*> sorted;
  for (const Operand& operand : operands_) sorted.push_back(&operand);
  std::ranges::sort(sorted, {}, &Operand::host);
  for (const Operand* operand : sorted) {
    std::byte* const end = operand->host + operand->bytes;
    if (!regions_.empty() && operand->host < regions_.back().end)
      regions_.back().end = std::max(regions_.back().end, end);
    else
      regions_.push_back(Region{operand->host, end});
  }
}

std::uint64_t StagedCall::place_regions() {
  std::uint64_t end = 0;
  for (Region& region : regions_) {
    region.offset = align_up(end + guard_bytes, alignment) + region.phase();
    end = region.offset + region.bytes();
  }
  return end + guard_bytes;
}

std::uint64_t StagedCall::Region::phase() const {
  return reinterpret_cast<std::uintptr_t>(begin) % alignment;
}

void StagedCall::fill_image() {
  std::memset(arena_.before_.data(), guard_value, bytes_);
  for (const Region& region : regions_)
    std::memcpy(arena_.before_.data() + region.offset, region.begin, region.bytes());
}

void StagedCall::copy_in() {
  const std::byte* const image = arena_.before_.data();
  if (arena_.operands_ == Operands::together)
    return arena_.device_.copy(arena_.on_device_.data(), image, bytes_, CopyKind::host_to_device,
                               arena_.stream());
  for (Region& region : regions_) {
    region.own = arena_.device_.allocate(region.phase() + region.bytes());
    arena_.device_.copy(on_device(region), image + region.offset, region.bytes(),
                        CopyKind::host_to_device, arena_.stream());
  }
}

void StagedCall::copy_out() {
  std::byte* const image = arena_.after_.data();
  if (arena_.operands_ == Operands::together) {
    arena_.device_.copy(image, arena_.on_device_.data(), bytes_, CopyKind::device_to_host,
                        arena_.stream());
  } else {
    std::memcpy(image, arena_.before_.data(), bytes_);
    for (const Region& region : regions_)
      arena_.device_.copy(image + region.offset, on_device(region), region.bytes(),
                          CopyKind::device_to_host, arena_.stream());
  }
  arena_.stream().synchronize();
}

std::byte* StagedCall::on_device(const Region& region) const {
  if (arena_.operands_ == Operands::apart) return region.own.data() + region.phase();
  return arena_.on_device_.data() + region.offset;
}

const StagedCall::Region& StagedCall::region_of(const Operand& operand) const {
  const auto after = std::ranges::upper_bound(regions_, operand.host, {}, &Region::begin);
  ensure(after != regions_.begin());
  return *std::prev(after);
}

std::uint64_t StagedCall::offset_of(const Operand& operand) const {
  const Region& region = region_of(operand);
  return region.offset + static_cast<std::uint64_t>(operand.host - region.begin);
}

void StagedCall::report(std::uint64_t offset) const {
  std::string text = fmt::format("{} has written where it may not: byte {} of", op_, offset);
  for (const Operand& operand : operands_) {
    const std::uint64_t begin = offset_of(operand);
    text += fmt::format(" {} [{}, {}){}", operand.name, begin, begin + operand.bytes,
                        operand.touch == Touch::reads ? " (to be read)" : "");
  }
  throw Error(text);
}

}  // namespace strata::testing
