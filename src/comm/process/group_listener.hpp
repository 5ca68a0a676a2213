#pragma once
// The GroupListener is process 0's door. Who connects is a stranger, of whom little is kept and for
// a short time, until it has said in the right form which process of this job it is.
//
// Thread contract: the thread of its io_context alone.

#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "group_connection.hpp"
#include "group_peer.hpp"
#include "group_timer.hpp"

namespace strata {

class GroupListener final : public GroupReceiver {
 public:
  // Takes the connection and returns nothing, or says why it will not have it.
  using Admit =
      std::function<std::string(std::shared_ptr<GroupConnection> connection, const GroupPeer&)>;

  GroupListener(boost::asio::ip::tcp::acceptor acceptor, const Launch& launch, double hello_s,
                Admit admit);

  boost::asio::ip::tcp::endpoint endpoint() const { return endpoint_; }
  void open();
  void close();
  // "; 2 connections were dropped, the last of them from ...: it ...", or empty.
  std::string describe_dropped() const;

  void on_message(GroupConnection& connection, GroupMessage message) override;
  void on_ended(GroupConnection& connection, const std::string& why) override;

 private:
  using Connection = std::shared_ptr<GroupConnection>;

  void accept();
  void take_in(boost::asio::ip::tcp::socket socket);
  Connection take_out(const GroupConnection& connection);
  std::string judge(const Connection& connection, const GroupMessage& message);
  void count_dropped(const GroupConnection& connection, const std::string& why);

  boost::asio::ip::tcp::acceptor acceptor_;
  boost::asio::ip::tcp::endpoint endpoint_;
  GroupTimer pause_;
  std::uint64_t token_;
  int num_processes_;
  double hello_s_;
  Admit admit_;
  std::deque<Connection> strangers_;  // the oldest first
  std::uint64_t num_dropped_ = 0;
  std::string last_dropped_;
};

}  // namespace strata
