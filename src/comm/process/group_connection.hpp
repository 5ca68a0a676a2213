#pragma once
// A GroupConnection is a TCP connection that carries group messages, both ways. It lives as long as
// something is going on, and ends by itself: when the other end closes, is silent for too long or
// says what cannot be read.
//
// Thread contract: the thread of its io_context alone.

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "group_message.hpp"
#include "group_timer.hpp"

namespace strata {

class GroupConnection;

// Whom a connection tells. May close the connection and destroy its own hold on it.
class GroupReceiver {
 public:
  virtual void on_message(GroupConnection& connection, GroupMessage message) = 0;
  // Once, when the connection ended otherwise than by close() or finish(): "it said nothing for 5
  // s", "its connection was closed".
  virtual void on_ended(GroupConnection& connection, const std::string& why) = 0;

 protected:
  ~GroupReceiver() = default;
};

class GroupConnection : public std::enable_shared_from_this<GroupConnection> {
 public:
  // A message's text is made once for all connections.
  using Frame = std::shared_ptr<const std::string>;
  static Frame frame(const GroupMessage& message);

  GroupConnection(boost::asio::ip::tcp::socket socket, std::size_t body_bytes_max);

  void start(GroupReceiver& receiver);
  void set_receiver(GroupReceiver& receiver) { receiver_ = &receiver; }
  void set_body_bytes_max(std::size_t bytes) { body_bytes_max_ = bytes; }
  std::string address() const { return address_; }  // of the other end: "127.0.0.1:4242"

  void send(Frame frame);
  void send(const GroupMessage& message) { send(frame(message)); }
  // Says that this process lives, unless something on its way says it already, and counts. Ends the
  // connection when `quiet_ticks_max` calls in a row saw nothing come. Counted, not timed: a
  // process that was stopped for a while has not listened, and must not blame the others.
  void tick(int quiet_ticks_max, double silent_s);
  // The connection ends for `why` unless the limit is lifted in time.
  void set_limit(double limit_s, const std::string& why);
  void lift_limit() { limit_.cancel(); }

  // What was sent still goes out; nothing that comes is heard. Then the connection ends: when the
  // other end closes it or takes nothing any more. Not closed at once: a closed connection to which
  // something still comes loses what is on its way to the other end.
  void finish();
  void close();  // Now.

 private:
  using ErrorCode = boost::system::error_code;

  void read();
  void on_read(const ErrorCode& error, std::size_t bytes);
  void take_messages();
  void write();
  void shut();
  void on_written(const ErrorCode& error);
  void end(const std::string& why);

  boost::asio::ip::tcp::socket socket_;
  GroupTimer limit_;
  std::string address_;
  GroupReceiver* receiver_ = nullptr;
  bool is_open_ = true, is_finishing_ = false, can_write_ = true;
  std::size_t body_bytes_max_;
  int quiet_ticks_ = 0;
  std::array<char, 16384> chunk_ = {};
  std::string received_;  // and not a whole message yet
  std::deque<Frame> unsent_;
};

}  // namespace strata
