#include "group_spoke.hpp"

#include <fmt/format.h>

#include <utility>

#include "group_address.hpp"
#include "strata/core/error.hpp"

namespace strata {

GroupSpoke::GroupSpoke(boost::asio::io_context& context, GroupDialer::Endpoints endpoints,
                       const ProcessGroupOptions& options, GroupBoard& board)
    : GroupNode(context, options, board),
      dialer_(context, endpoints, options.launch, options.hello_s,
              [this](auto connection, const GroupPeer& hub) {
                on_reached(std::move(connection), hub);
              }),
      address_advice_(address_advice(options.launch, endpoints)) {}

void GroupSpoke::on_reached(std::shared_ptr<GroupConnection> connection, const GroupPeer& hub) {
  hub_ = hub;
  connection_ = std::move(connection);
  connection_->set_receiver(*this);
  connection_->set_body_bytes_max(group_text_bytes_max);
  connection_->send({.kind = GroupMessageKind::agreement, .body = options_.agreement});
}

// Once process 0 knows this process, process 0's own time to join counts.
void GroupSpoke::join_is_due() {
  is_overdue_ = true;
  if (!connection_) refuse_absent();
}

void GroupSpoke::refuse_absent() {
  dialer_.stop();
  board_.refuse(GroupRefusal::absent,
                fmt::format("process {} could not join process 0 at {} within {:g} s: {}; see that "
                            "process 0 runs, and that MASTER_ADDR and MASTER_PORT are alike for "
                            "all processes and lead to it{}",
                            self_.process, options_.launch.address, options_.join_s,
                            dialer_.describe_problem(), address_advice_));
}

void GroupSpoke::tick() {
  if (const auto connection = connection_) watch(*connection);
}

void GroupSpoke::on_message(GroupConnection& connection, GroupMessage message) {
  if (obey(message)) return;
  connection.close();
  lose_hub("it broke the group's protocol");
}

bool GroupSpoke::obey(GroupMessage& message) {
  if (message.kind == GroupMessageKind::alive) return true;
  if (!has_joined_) return take_verdict(message);
  if (message.kind == GroupMessageKind::text) return take_text(message);
  if (message.kind == GroupMessageKind::goodbye) return take_goodbye(message);
  if (message.kind == GroupMessageKind::failed) settle(message.body);
  return message.kind == GroupMessageKind::failed;
}

bool GroupSpoke::take_verdict(const GroupMessage& message) {
  if (message.kind == GroupMessageKind::welcome) {
    end_join();
    has_joined_ = true;
    board_.set_joined();
    return true;
  }
  if (message.kind != GroupMessageKind::refused) return false;
  end_join();
  close_connections(false);
  board_.refuse(GroupRefusal{message.number}, message.body);
  return true;
}

bool GroupSpoke::take_text(GroupMessage& message) {
  const bool is_known =
      message.process < static_cast<std::uint32_t>(options_.launch.num_processes) &&
      message.process != static_cast<std::uint32_t>(self_.process);
  return is_known && board_.put_text(static_cast<int>(message.process), message.number,
                                     std::move(message.body));
}

bool GroupSpoke::take_goodbye(const GroupMessage& message) {
  if (message.process >= static_cast<std::uint32_t>(options_.launch.num_processes)) return false;
  const bool is_hub = message.process == 0;
  board_.set_left(static_cast<int>(message.process), message.body, is_hub);
  if (!is_hub) return true;
  close_connections(false);
  if (!own_reason_.empty()) settle(own_reason_);
  return true;
}

void GroupSpoke::on_ended(GroupConnection&, const std::string& why) { lose_hub(why); }

void GroupSpoke::lose_hub(const std::string& why) {
  connection_.reset();
  if (has_joined_)
    return settle(own_reason_.empty() ? fmt::format("{} is gone: {}", describe(hub_), why)
                                      : own_reason_);
  if (is_overdue_) return refuse_absent();
  dialer_.dial_again(why);
}

void GroupSpoke::give_text(std::uint64_t round, std::string text) {
  if (connection_) {
    connection_->send({.kind = GroupMessageKind::text,
                       .process = static_cast<std::uint32_t>(self_.process),
                       .number = round,
                       .body = text});
  }
  ensure(board_.put_text(self_.process, round, std::move(text)));
}

// Process 0 says which reason was the job's first; it may be another's.
void GroupSpoke::fail_for_own_reason() {
  if (!connection_) return settle(own_reason_);
  connection_->send({.kind = GroupMessageKind::failed,
                     .process = static_cast<std::uint32_t>(self_.process),
                     .body = own_reason_});
}

void GroupSpoke::close_connections(bool with_goodbye) {
  dialer_.stop();
  if (!connection_) return;
  if (with_goodbye) {
    connection_->send(
        {.kind = GroupMessageKind::goodbye, .process = static_cast<std::uint32_t>(self_.process)});
  }
  connection_->finish();
  connection_.reset();
}

}  // namespace strata
