#include "group_board.hpp"

#include <utility>

#include "strata/core/error.hpp"

namespace strata {

using Lock = std::unique_lock<std::mutex>;

GroupBoard::GroupBoard(int num_processes) : places_(static_cast<std::size_t>(num_processes)) {}

void GroupBoard::set_joined() {
  const Lock lock(mutex_);
  has_joined_ = true;
  changed_.notify_all();
}

void GroupBoard::refuse(GroupRefusal kind, const std::string& reason) {
  const Lock lock(mutex_);
  if (!refusal_) refusal_ = Refusal{kind, reason};
  changed_.notify_all();
}

void GroupBoard::wait_joined() {
  Lock lock(mutex_);
  changed_.wait(lock, [&] { return has_joined_ || refusal_; });
  if (!refusal_) return;
  if (refusal_->kind == GroupRefusal::differs) throw ConfigError(refusal_->reason);
  throw Error(refusal_->reason);
}

bool GroupBoard::put_text(int process, std::uint64_t round, std::string text) {
  const Lock lock(mutex_);
  if (!failure_.empty()) return true;  // Whoever waits is told of that, however late it wakes.
  Place& place = places_[static_cast<std::size_t>(process)];
  if (round != round_ || place.text) return false;
  place.text = std::move(text);
  if (++num_texts_ == places_.size()) end_round();
  return true;
}

// The next round cannot end before this process has given to it, hence has taken these.
void GroupBoard::end_round() {
  ended_texts_.clear();
  for (Place& place : places_) {
    ended_texts_.push_back(std::move(*place.text));
    place.text.reset();
  }
  num_texts_ = 0;
  ++round_;
  changed_.notify_all();
}

void GroupBoard::set_left(int process, const std::string& who, bool passes_on) {
  const Lock lock(mutex_);
  places_[static_cast<std::size_t>(process)].left_as = who;
  if (passes_on) hub_left_as_ = who;
  changed_.notify_all();
}

const std::string* GroupBoard::leaver() const {
  if (!hub_left_as_.empty()) return &hub_left_as_;
  for (const Place& place : places_) {
    if (!place.left_as.empty() && !place.text) return &place.left_as;
  }
  return nullptr;
}

void GroupBoard::throw_why() const {
  if (!failure_.empty()) throw Error(failure_);
  throw Error(*leaver() + " has left the group, so an exchange of texts cannot end");
}

std::uint64_t GroupBoard::begin_round() {
  const Lock lock(mutex_);
  if (is_over()) throw_why();
  return round_;
}

std::vector<std::string> GroupBoard::wait_texts(std::uint64_t round) {
  Lock lock(mutex_);
  changed_.wait(lock, [&] { return round_ > round || is_over(); });
  if (round_ == round) throw_why();
  return std::move(ended_texts_);
}

void GroupBoard::fail(const std::string& reason) {
  const Lock lock(mutex_);
  if (failure_.empty()) failure_ = reason;
  changed_.notify_all();
}

}  // namespace strata
