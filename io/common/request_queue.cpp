#include "io/common/request_queue.hpp"

#include <utility>

#include "strata/core/error.hpp"

namespace strata {

RequestQueue::Line& RequestQueue::line_of(const ActiveRequest& request) {
  return lines_[static_cast<std::size_t>(request.request.priority)];
}

void RequestQueue::push(ActiveRequest& request) {
  request.queued = true;
  append(line_of(request), request);
}

void RequestQueue::append(Line& line, ActiveRequest& request) {
  request.next = nullptr;
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

ActiveRequest* RequestQueue::take_out(const IoCompletion& completion) {
  ActiveRequest* taken = nullptr;
  for (Line& line : lines_) take_out(line, completion, taken);
  return taken;
}

void RequestQueue::take_out(Line& line, const IoCompletion& completion, ActiveRequest*& taken) {
  ActiveRequest* next = std::exchange(line, Line{}).head;
  while (next != nullptr) {
    ActiveRequest& request = *std::exchange(next, next->next);
    if (request.request.completion != &completion) {
      append(line, request);
      continue;
    }
    request.queued = false;
    request.next = std::exchange(taken, &request);
  }
}

}  // namespace strata
