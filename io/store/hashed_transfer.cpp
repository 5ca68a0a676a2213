#include "io/store/hashed_transfer.hpp"

#include <algorithm>

#include "io/store/hashed_transfers.hpp"

namespace strata {
namespace {

constexpr auto waits = [](const auto& line) { return line.head != nullptr; };

}  // namespace

void HashedTransfer::complete(const IoResult& engine_result) noexcept {
  owner->transferred(*this, engine_result);
}

void HashQueue::push(HashedTransfer& transfer) {
  Line& line = lines_[static_cast<std::size_t>(transfer.request.priority)];
  transfer.next = nullptr;
  (line.head == nullptr ? line.head : line.tail->next) = &transfer;
  line.tail = &transfer;
}

bool HashQueue::empty() const { return std::ranges::none_of(lines_, waits); }

HashQueue::Line* HashQueue::highest() {
  const auto found = std::ranges::find_if(lines_, waits);
  return found == lines_.end() ? nullptr : &*found;
}

HashQueue::Line* HashQueue::lowest() {
  const auto found = std::find_if(lines_.rbegin(), lines_.rend(), waits);
  return found == lines_.rend() ? nullptr : &*found;
}

HashedTransfer* HashQueue::pop() {
  Line* line = ++turn_ % turns_per_lowest_turn == 0 ? lowest() : highest();
  if (line == nullptr) return nullptr;
  HashedTransfer* transfer = line->head;
  line->head = transfer->next;
  return transfer;
}

}  // namespace strata
