#include "train/first_touch.hpp"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <thread>

#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

constexpr std::size_t page_bytes = 4 * KiB;
constexpr std::size_t large_page_bytes = 2 * MiB;

// Homes that share bytes are touched from several threads: whoever comes first decides.
void touch_pages(std::span<std::byte> memory) {
  for (std::size_t offset = 0; offset < memory.size(); offset += page_bytes)
    std::atomic_ref(memory[offset]).store(std::byte{0}, std::memory_order_relaxed);
}

std::vector<std::span<std::byte>> in_large_pages(std::span<std::byte> memory) {
  std::vector<std::span<std::byte>> pieces;
  for (; !memory.empty(); memory = memory.subspan(pieces.back().size()))
    pieces.push_back(memory.first(std::min(large_page_bytes, memory.size())));
  return pieces;
}

// Every `count`th large page, from the `index`th on: the threads of a node advance together.
void touch_part(const FirstTouch::Spans& spans, std::size_t index, std::size_t count) {
  std::size_t turn = 0;
  for (const auto& span : spans) {
    for (const auto& piece : in_large_pages(span)) {
      if (turn++ % count == index) touch_pages(piece);
    }
  }
}

}  // namespace

FirstTouch::FirstTouch(std::vector<NodeThreads> threads)
    : threads_(std::move(threads)), spans_(threads_.size()) {
  for (const NodeThreads& node : threads_) num_threads_ += static_cast<std::size_t>(node.count);
  ensure(num_threads_ > 0);
}

void FirstTouch::divide(std::span<std::byte> region) {
  const std::size_t pages = (region.size() + page_bytes - 1) / page_bytes;
  std::size_t begin = 0, threads = 0;
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    threads += static_cast<std::size_t>(threads_[i].count);
    const std::size_t end = std::min(region.size(), pages * threads / num_threads_ * page_bytes);
    if (end > begin) spans_[i].push_back(region.subspan(begin, end - begin));
    begin = end;
  }
}

void FirstTouch::interleave(std::span<std::byte> region) {
  std::vector<std::size_t> dealt_to;  // the node of each of a round's pages
  for (std::size_t i = 0; i < threads_.size(); ++i)
    dealt_to.insert(dealt_to.end(), static_cast<std::size_t>(threads_[i].count), i);
  std::size_t turn = 0;
  for (const auto& piece : in_large_pages(region))
    spans_[dealt_to[turn++ % dealt_to.size()]].push_back(piece);
}

void FirstTouch::run(const Bind& bind) const {
  std::vector<std::jthread> touching;
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    const auto count = static_cast<std::size_t>(threads_[i].count);
    for (std::size_t index = 0; index < count; ++index)
      touching.emplace_back([this, &bind, i, index, count] {
        bind(threads_[i].cores);
        touch_part(spans_[i], index, count);
      });
  }
}

std::vector<Region> host_regions(const Plan& plan) {
  std::vector<Region> regions;
  for (const auto& homes : plan.homes)
    std::ranges::copy_if(homes, std::back_inserter(regions),
                         [](const Region& home) { return home.tier == Tier::host; });
  for (const SlotPool& pool : plan.pools) {
    if (pool.tier != Tier::host) continue;
    for (int slot = 0; slot < pool.num_slots; ++slot)
      regions.push_back({Tier::host, 0,
                         pool.offset + static_cast<std::uint64_t>(slot) * pool.slot_bytes,
                         pool.slot_bytes});
  }
  return regions;
}

}  // namespace strata
