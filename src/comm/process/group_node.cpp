#include "group_node.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace strata {
namespace {

std::string shortened(const std::string& reason) {
  if (reason.empty()) return "a process failed and gave no reason";
  if (reason.size() <= group_reason_bytes_max) return reason;
  return reason.substr(0, group_reason_bytes_max - 3) + "...";
}

}  // namespace

// A process says that it lives at least three times before it would count as silent.
GroupNode::GroupNode(boost::asio::io_context& context, const ProcessGroupOptions& options,
                     GroupBoard& board)
    : options_(options),
      self_(this_group_peer(options.launch.process)),
      board_(board),
      heartbeat_s_(std::min(options.heartbeat_s, options.silent_s / 3)),
      quiet_ticks_max_(static_cast<int>(std::ceil(options.silent_s / heartbeat_s_))),
      heartbeat_(context.get_executor()),
      join_limit_(context.get_executor()) {}

void GroupNode::start() {
  join_limit_.set(options_.join_s, [this] { join_is_due(); });
  begin();
  beat();
}

void GroupNode::beat() {
  heartbeat_.set(heartbeat_s_, [this] {
    beat();
    tick();
  });
}

void GroupNode::fail(const std::string& reason) {
  if (!failure_.empty() || !own_reason_.empty()) return;
  own_reason_ = shortened(reason);
  fail_for_own_reason();
}

void GroupNode::settle(const std::string& reason) {
  if (!failure_.empty()) return;
  failure_ = shortened(reason);
  pass_on_failure(failure_);
  board_.fail(failure_);
  tell();
}

void GroupNode::set_told(ToldOfFailure told) {
  told_ = std::move(told);
  tell();
}

void GroupNode::tell() {
  if (failure_.empty() || failure_ == own_reason_ || !told_) return;
  std::exchange(told_, nullptr)(failure_);
}

void GroupNode::leave() {
  told_ = nullptr;
  heartbeat_.cancel();
  join_limit_.cancel();
  close_connections(failure_.empty() && own_reason_.empty());
}

}  // namespace strata
