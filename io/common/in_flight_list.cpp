#include "io/common/in_flight_list.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "strata/core/clock.hpp"

namespace strata {

InFlightList::InFlightList(std::size_t reserved) {
  entries_.reserve(reserved);
  free_.reserve(reserved);
}

std::size_t InFlightList::begin(const Piece& piece, std::int64_t now_ns) {
  if (free_.empty()) {
    free_.push_back(entries_.size());
    entries_.emplace_back();
  }
  const std::size_t place = free_.back();
  free_.pop_back();
  entries_[place] = {piece.active, piece.start, piece.bytes, now_ns, false};
  return place;
}

void InFlightList::end(std::size_t place, std::int64_t now_ns) {
  entries_[place].active = nullptr;
  free_.push_back(place);
  last_end_ns_ = now_ns;
  last_news_ns_ = now_ns;
}

std::int64_t InFlightList::due_ns(const Entry& entry, std::int64_t stall_ns) const {
  return (entry.told ? std::max(entry.since_ns, last_news_ns_) : entry.since_ns) + stall_ns;
}

StallCheck InFlightList::check(std::int64_t now_ns, std::int64_t stall_ns) {
  StallCheck result = {.next_ns = now_ns + stall_ns, .silent_seconds = {}, .in_flight = {}};
  std::int64_t oldest_ns = now_ns;
  bool due = false;
  for (const Entry& entry : entries_) {
    if (entry.active == nullptr) continue;
    oldest_ns = std::min(oldest_ns, entry.since_ns);
    due = due || due_ns(entry, stall_ns) <= now_ns;
    if (!due) result.next_ns = std::min(result.next_ns, due_ns(entry, stall_ns));
  }
  if (!due) return result;
  for (Entry& entry : entries_) entry.told = entry.told || entry.since_ns + stall_ns <= now_ns;
  last_news_ns_ = now_ns;
  result.next_ns = now_ns;  // the others' turns follow from what has just been told
  result.silent_seconds = seconds(now_ns - std::max(oldest_ns, last_end_ns_));
  result.in_flight = describe(now_ns);
  return result;
}

// What began or ended since the pause stays where it is: nothing lies in the future.
void InFlightList::forget_pause(std::int64_t pause_ns, std::int64_t now_ns) {
  const auto shift = [&](std::int64_t& at_ns) { at_ns = std::min(at_ns + pause_ns, now_ns); };
  for (Entry& entry : entries_) shift(entry.since_ns);
  shift(last_end_ns_);
  shift(last_news_ns_);
}

std::string InFlightList::describe(std::int64_t now_ns) const {
  std::string text;
  for (const Entry& entry : entries_) {
    if (entry.active == nullptr) continue;
    const IoRequest& request = entry.active->request;
    text +=
        fmt::format("{}{} {}: {} bytes at offset {}, for {:.3g} s", text.empty() ? "" : "; ",
                    request.op == IoOp::read ? "read of" : "write to", entry.active->file->path(),
                    entry.bytes, request.offset + entry.start, seconds(now_ns - entry.since_ns));
  }
  return text;
}

}  // namespace strata
