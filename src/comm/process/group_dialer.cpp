#include "group_dialer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "group_address.hpp"
#include "group_agreement.hpp"

namespace strata {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;

constexpr double pause_s_min = 0.02, pause_s_max = 0.5;

}  // namespace

GroupDialer::GroupDialer(boost::asio::io_context& context, Endpoints endpoints,
                         const Launch& launch, double hello_s, Reached reached)
    : context_(context),
      endpoints_(std::move(endpoints)),
      token_(group_token(launch)),
      process_(launch.process),
      hello_s_(hello_s),
      pause_s_(pause_s_min),
      reached_(std::move(reached)),
      socket_(context),
      timer_(context.get_executor()) {}

void GroupDialer::dial() {
  socket_ = tcp::socket(context_);
  socket_.async_connect(endpoint(), [this, number = ++try_number_](const error_code& error) {
    if (number == try_number_) on_connected(error);
  });
  timer_.set(hello_s_, [this] { dial_again(fmt::format("no answer within {:g} s", hello_s_)); });
}

// From one address to the next at once, and around again after a pause.
void GroupDialer::dial_again(const std::string& why) {
  stop();
  problem_ = fmt::format("{}: {}", to_text(endpoint()), why);
  next_ = (next_ + 1) % endpoints_.size();
  if (next_ != 0) return dial();
  timer_.set(pause_s_, [this] { dial(); });
  pause_s_ = std::min(2 * pause_s_, pause_s_max);
}

void GroupDialer::stop() {
  ++try_number_;
  error_code ignored;
  socket_.close(ignored);
  timer_.cancel();
  if (connection_) connection_->close();
  connection_.reset();
}

void GroupDialer::on_connected(const error_code& error) {
  timer_.cancel();
  if (error) return dial_again(error.message());
  if (is_connected_to_itself()) return dial_again("nobody listens");
  say_hello();
}

// Where nobody listens, the system may give a connection the port that it is to reach as its own.
bool GroupDialer::is_connected_to_itself() const {
  error_code error;
  const tcp::endpoint here = socket_.local_endpoint(error);
  const tcp::endpoint there = socket_.remote_endpoint(error);
  return !error && here == there;
}

void GroupDialer::say_hello() {
  connection_ = std::make_shared<GroupConnection>(std::move(socket_), group_hello_bytes_max);
  connection_->start(*this);
  connection_->set_limit(hello_s_, fmt::format("no answer within {:g} s", hello_s_));
  connection_->send({.kind = GroupMessageKind::hello,
                     .process = static_cast<std::uint32_t>(process_),
                     .number = token_,
                     .body = encode_group_peer(this_group_peer(process_))});
}

void GroupDialer::on_message(GroupConnection&, GroupMessage message) {
  if (message.kind == GroupMessageKind::dropped) {
    objection_ = excerpt(message.body, 0);
    return dial_again("it dropped this process: " + objection_);
  }
  const auto hub = parse_group_peer(0, message.body);
  if (message.kind != GroupMessageKind::known || !hub)
    return dial_again("it does not answer as process 0 does");
  connection_->lift_limit();
  reached_(std::exchange(connection_, nullptr), *hub);
}

void GroupDialer::on_ended(GroupConnection&, const std::string& why) {
  connection_.reset();
  dial_again(why);
}

std::string GroupDialer::describe_problem() const {
  if (problem_.empty()) return to_text(endpoint()) + ": no answer yet";
  if (objection_.empty() || problem_.ends_with(objection_)) return problem_;
  return fmt::format("{}; before, process 0 dropped this process: {}", problem_, objection_);
}

}  // namespace strata
