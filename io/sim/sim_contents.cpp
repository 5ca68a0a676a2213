#include "io/sim/sim_contents.hpp"

#include <algorithm>
#include <cstring>

namespace strata {
namespace {

// Calls visit(page index, offset in page, offset in transfer, bytes) for each page of a transfer.
template <typename Visit>
void for_each_page(std::uint64_t page_bytes, std::uint64_t offset, std::uint64_t bytes,
                   Visit visit) {
  for (std::uint64_t at = 0; at < bytes;) {
    const std::uint64_t in_page = (offset + at) % page_bytes;
    const std::uint64_t part = std::min(page_bytes - in_page, bytes - at);
    visit((offset + at) / page_bytes, in_page, at, part);
    at += part;
  }
}

}  // namespace

void SimContents::resize(std::uint64_t bytes) {
  size_ = bytes;
  pages_.erase(pages_.lower_bound((bytes + page_bytes - 1) / page_bytes), pages_.end());
  const std::uint64_t index = bytes / page_bytes, kept = bytes % page_bytes;
  if (!pages_.contains(index)) return;
  Page& last = writable_page(index);
  std::fill(last.begin() + static_cast<std::ptrdiff_t>(kept), last.end(), std::byte{0});
}

void SimContents::read(std::uint64_t offset, std::span<std::byte> target) const {
  for_each_page(page_bytes, offset, target.size(), [&](auto index, auto in_page, auto at, auto n) {
    const auto page = pages_.find(index);
    if (page == pages_.end()) {
      std::memset(target.data() + at, 0, n);
    } else {
      std::memcpy(target.data() + at, page->second->data() + in_page, n);
    }
  });
}

void SimContents::write(std::uint64_t offset, std::span<const std::byte> source) {
  for_each_page(page_bytes, offset, source.size(), [&](auto index, auto in_page, auto at, auto n) {
    std::memcpy(writable_page(index).data() + in_page, source.data() + at, n);
  });
}

SimContents::Page& SimContents::writable_page(std::uint64_t index) {
  std::shared_ptr<Page>& page = pages_[index];
  if (page == nullptr) {
    page = std::make_shared<Page>();
  } else if (page.use_count() > 1) {
    page = std::make_shared<Page>(*page);
  }
  return *page;
}

}  // namespace strata
