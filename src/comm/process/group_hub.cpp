#include "group_hub.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "strata/core/error.hpp"

namespace strata {

GroupHub::GroupHub(boost::asio::io_context& context, boost::asio::ip::tcp::acceptor acceptor,
                   const ProcessGroupOptions& options, GroupBoard& board)
    : GroupNode(context, options, board),
      seats_(static_cast<std::size_t>(options.launch.num_processes - 1)),
      listener_(std::move(acceptor), options.launch, options.hello_s,
                [this](auto connection, const GroupPeer& peer) {
                  return admit(std::move(connection), peer);
                }) {}

GroupHub::Seat& GroupHub::seat_of(const GroupConnection& connection) {
  const auto found = std::ranges::find_if(
      seats_, [&](const Seat& seat) { return seat.connection.get() == &connection; });
  ensure(found != seats_.end());
  return *found;
}

void GroupHub::send_all(const GroupMessage& message, const Seat* except) {
  const GroupConnection::Frame frame = GroupConnection::frame(message);
  for (const Seat& seat : seats_) {
    if (seat.connection && &seat != except) seat.connection->send(frame);
  }
}

void GroupHub::tick() {
  for (const Seat& seat : seats_) {
    if (const auto connection = seat.connection) watch(*connection);
  }
}

void GroupHub::on_message(GroupConnection& connection, GroupMessage message) {
  Seat& seat = seat_of(connection);
  if (obey(seat, message)) return;
  connection.close();
  lose(seat, "it broke the group's protocol");
}

bool GroupHub::obey(Seat& seat, GroupMessage& message) {
  if (message.kind == GroupMessageKind::alive) return true;
  if (message.kind == GroupMessageKind::agreement)
    return take_agreement(seat, std::move(message.body));
  if (!has_joined_) return false;
  if (message.kind == GroupMessageKind::text) return take_text(seat, message);
  if (message.kind == GroupMessageKind::goodbye) return take_goodbye(seat);
  if (message.kind == GroupMessageKind::failed) settle(message.body);
  return message.kind == GroupMessageKind::failed;
}

void GroupHub::on_ended(GroupConnection& connection, const std::string& why) {
  lose(seat_of(connection), why);
}

void GroupHub::lose(Seat& seat, const std::string& why) {
  seat.connection.reset();
  seat.agreement.reset();
  seat.absence = fmt::format("{} came and is gone: {}", describe(seat.peer), why);
  if (has_joined_) settle(fmt::format("{} is gone: {}", describe(seat.peer), why));
}

void GroupHub::give_text(std::uint64_t round, std::string text) {
  send_all({.kind = GroupMessageKind::text, .process = 0, .number = round, .body = text});
  ensure(board_.put_text(0, round, std::move(text)));
}

bool GroupHub::take_text(const Seat& seat, const GroupMessage& message) {
  if (message.process != static_cast<std::uint32_t>(seat.peer.process)) return false;
  if (!board_.put_text(seat.peer.process, message.number, message.body)) return false;
  send_all(message, &seat);
  return true;
}

bool GroupHub::take_goodbye(Seat& seat) {
  const std::string who = describe(seat.peer);
  board_.set_left(seat.peer.process, who, false);
  send_all({.kind = GroupMessageKind::goodbye,
            .process = static_cast<std::uint32_t>(seat.peer.process),
            .body = who},
           &seat);
  seat.connection->finish();
  seat.connection.reset();
  return true;
}

void GroupHub::pass_on_failure(const std::string& reason) {
  send_all({.kind = GroupMessageKind::failed, .body = reason});
}

void GroupHub::close_connections(bool with_goodbye) {
  listener_.close();
  if (with_goodbye)
    send_all({.kind = GroupMessageKind::goodbye, .process = 0, .body = describe(self_)});
  for (Seat& seat : seats_) {
    if (seat.connection) seat.connection->finish();
    seat.connection.reset();
  }
}

}  // namespace strata
