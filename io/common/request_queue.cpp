#include "io/common/request_queue.hpp"

#include "strata/core/error.hpp"

namespace strata {

RequestQueue::Line& RequestQueue::line_of(const ActiveRequest& request) {
  return lines_[static_cast<std::size_t>(request.request.priority)];
}

void RequestQueue::push(ActiveRequest& request) {
  Line& line = line_of(request);
  request.next = nullptr;
  request.queued = true;
  (line.head == nullptr ? line.head : line.tail->next) = &request;
  line.tail = &request;
}

bool RequestQueue::empty() const { return highest() == num_io_priorities; }

int RequestQueue::highest() const {
  int line = 0;
  while (line < num_io_priorities && lines_[static_cast<std::size_t>(line)].head == nullptr) ++line;
  return line;
}

ActiveRequest* RequestQueue::oldest_below(int line) const {
  ActiveRequest* oldest = nullptr;
  for (auto lower = static_cast<std::size_t>(line) + 1; lower < lines_.size(); ++lower) {
    ActiveRequest* head = lines_[lower].head;
    if (head != nullptr && (oldest == nullptr || head->sequence < oldest->sequence)) oldest = head;
  }
  return oldest;
}

ActiveRequest* RequestQueue::next() {
  const int line = highest();
  if (line == num_io_priorities) return nullptr;
  if (++turn_ % turns_per_lower_turn == 0) {
    if (ActiveRequest* lower = oldest_below(line)) return lower;
  }
  return lines_[static_cast<std::size_t>(line)].head;
}

void RequestQueue::pop(ActiveRequest& request) {
  Line& line = line_of(request);
  ensure(line.head == &request);
  line.head = request.next;
  if (line.head == nullptr) line.tail = nullptr;
  request.next = nullptr;
  request.queued = false;
}

}  // namespace strata
