#include "group_listener.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace strata {
namespace {

using boost::asio::ip::tcp;

constexpr std::size_t strangers_max = 64;
constexpr double pause_s = 0.1;

}  // namespace

GroupListener::GroupListener(tcp::acceptor acceptor, const Launch& launch, double hello_s,
                             Admit admit)
    : acceptor_(std::move(acceptor)),
      endpoint_(acceptor_.local_endpoint()),
      pause_(acceptor_.get_executor()),
      token_(group_token(launch)),
      num_processes_(launch.num_processes),
      hello_s_(hello_s),
      admit_(std::move(admit)) {}

void GroupListener::open() { accept(); }

void GroupListener::close() {
  boost::system::error_code ignored;
  acceptor_.close(ignored);
  pause_.cancel();
  for (const Connection& stranger : strangers_) stranger->close();
  strangers_.clear();
}

void GroupListener::accept() {
  acceptor_.async_accept([this](const boost::system::error_code& error, tcp::socket socket) {
    if (!acceptor_.is_open()) return;
    if (error) return pause_.set(pause_s, [this] { accept(); });  // Out of files, say.
    take_in(std::move(socket));
    accept();
  });
}

// Where too many knock, the oldest goes: a process of ours says hello at once.
void GroupListener::take_in(tcp::socket socket) {
  if (strangers_.size() == strangers_max) {
    count_dropped(*strangers_.front(), "too many others came before it said who it is");
    strangers_.front()->close();
    strangers_.pop_front();
  }
  strangers_.push_back(std::make_shared<GroupConnection>(std::move(socket), group_hello_bytes_max));
  strangers_.back()->start(*this);
  strangers_.back()->set_limit(hello_s_,
                               fmt::format("it did not say who it is within {:g} s", hello_s_));
}

GroupListener::Connection GroupListener::take_out(const GroupConnection& connection) {
  const auto found = std::ranges::find(strangers_, &connection, &Connection::get);
  Connection taken = *found;
  strangers_.erase(found);
  return taken;
}

void GroupListener::on_message(GroupConnection& connection, GroupMessage message) {
  const Connection taken = take_out(connection);
  taken->lift_limit();
  if (message.kind != GroupMessageKind::hello) {
    count_dropped(*taken, "it did not begin with who it is");
    return taken->close();
  }
  const std::string why = judge(taken, message);
  if (why.empty()) return;
  count_dropped(*taken, why);
  taken->send({.kind = GroupMessageKind::dropped, .body = why});
  taken->finish();
}

std::string GroupListener::judge(const Connection& connection, const GroupMessage& message) {
  if (message.number != token_)
    return "it is of another job, or of one with more or fewer processes";
  if (message.process == 0 || message.process >= static_cast<std::uint32_t>(num_processes_))
    return fmt::format("process {} is none of those that connect", message.process);
  const auto peer = parse_group_peer(static_cast<int>(message.process), message.body);
  return peer ? admit_(connection, *peer) : "it does not say where it runs";
}

void GroupListener::on_ended(GroupConnection& connection, const std::string& why) {
  count_dropped(*take_out(connection), why);
}

void GroupListener::count_dropped(const GroupConnection& connection, const std::string& why) {
  ++num_dropped_;
  last_dropped_ = fmt::format("{}: {}", connection.address(), why);
}

std::string GroupListener::describe_dropped() const {
  if (num_dropped_ == 0) return "";
  return fmt::format("; {} connection{} dropped, the last from {}", num_dropped_,
                     num_dropped_ == 1 ? " was" : "s were", last_dropped_);
}

}  // namespace strata
