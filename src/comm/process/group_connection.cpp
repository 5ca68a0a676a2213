#include "group_connection.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/write.hpp>
#include <string_view>
#include <utility>

#include "group_address.hpp"

namespace strata {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

// While finishing: for the other end to take a message, and then to close.
constexpr double take_s = 10, close_s = 1;

std::string peer_address(const tcp::socket& socket) {
  boost::system::error_code error;
  const tcp::endpoint endpoint = socket.remote_endpoint(error);
  return error ? "an address unknown" : to_text(endpoint);
}

// Small messages go at once, and a program that this one starts does not hold the connection open.
void set_up(tcp::socket& socket) {
  boost::system::error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  ::fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
}

std::string reason_of(const boost::system::error_code& error) {
  if (error == asio::error::eof || error == asio::error::connection_reset)
    return "its connection was closed";
  return "its connection broke: " + error.message();
}

}  // namespace

GroupConnection::Frame GroupConnection::frame(const GroupMessage& message) {
  return std::make_shared<const std::string>(encode_group_message(message));
}

GroupConnection::GroupConnection(tcp::socket socket, std::size_t body_bytes_max)
    : socket_(std::move(socket)),
      limit_(socket_.get_executor()),
      address_(peer_address(socket_)),
      body_bytes_max_(body_bytes_max) {
  set_up(socket_);
}

void GroupConnection::start(GroupReceiver& receiver) {
  receiver_ = &receiver;
  read();
}

void GroupConnection::send(Frame frame) {
  if (!is_open_ || is_finishing_ || !can_write_) return;
  unsent_.push_back(std::move(frame));
  if (unsent_.size() == 1) write();
}

void GroupConnection::tick(int quiet_ticks_max, double silent_s) {
  if (!is_open_ || is_finishing_) return;
  if (++quiet_ticks_ > quiet_ticks_max)
    return end(fmt::format("it said nothing for {:g} s", silent_s));
  if (unsent_.empty()) send(GroupMessage{.kind = GroupMessageKind::alive});
}

void GroupConnection::set_limit(double limit_s, const std::string& why) {
  limit_.set(limit_s, [self = shared_from_this(), why] { self->end(why); });
}

void GroupConnection::finish() {
  if (!is_open_ || is_finishing_) return;
  is_finishing_ = true;
  set_limit(take_s, "");
  if (unsent_.empty()) shut();
}

void GroupConnection::shut() {
  set_limit(close_s, "");
  ErrorCode ignored;
  socket_.shutdown(tcp::socket::shutdown_send, ignored);
}

void GroupConnection::close() {
  is_open_ = false;
  ErrorCode ignored;
  limit_.cancel();
  socket_.close(ignored);
}

void GroupConnection::end(const std::string& why) {
  if (!is_open_) return;
  close();
  if (!is_finishing_) receiver_->on_ended(*this, why);
}

void GroupConnection::read() {
  socket_.async_read_some(asio::buffer(chunk_),
                          [self = shared_from_this()](const ErrorCode& error, std::size_t bytes) {
                            self->on_read(error, bytes);
                          });
}

void GroupConnection::on_read(const ErrorCode& error, std::size_t bytes) {
  if (!is_open_) return;
  if (error) return end(reason_of(error));
  quiet_ticks_ = 0;
  received_.append(chunk_.data(), bytes);
  take_messages();
  if (is_open_) read();
}

void GroupConnection::take_messages() {
  std::size_t taken = 0;
  while (is_open_ && !is_finishing_) {
    GroupMessageParse parse =
        parse_group_message(std::string_view(received_).substr(taken), body_bytes_max_);
    if (!parse.refusal.empty()) return end(parse.refusal);
    if (!parse.message) break;
    taken += parse.used_bytes;
    receiver_->on_message(*this, std::move(*parse.message));
  }
  received_.erase(0, is_finishing_ ? received_.size() : taken);
}

void GroupConnection::write() {
  asio::async_write(socket_, asio::buffer(*unsent_.front()),
                    [self = shared_from_this()](const ErrorCode& error, std::size_t) {
                      self->on_written(error);
                    });
}

// What cannot be written tells less than what there may still be to read: why the other end closed.
void GroupConnection::on_written(const ErrorCode& error) {
  if (!is_open_) return;
  if (error) {
    can_write_ = false;
    return unsent_.clear();
  }
  unsent_.pop_front();
  if (is_finishing_) set_limit(take_s, "");
  if (!unsent_.empty()) return write();
  if (is_finishing_) shut();
}

}  // namespace strata
