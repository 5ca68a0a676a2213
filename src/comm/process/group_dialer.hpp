#pragma once
// The GroupDialer reaches process 0: it tries the addresses again and again until something there
// answers as process 0 of this job does.
//
// Thread contract: the thread of its io_context alone.

#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "group_connection.hpp"
#include "group_peer.hpp"
#include "group_timer.hpp"

namespace strata {

class GroupDialer final : public GroupReceiver {
 public:
  using Endpoints = std::vector<boost::asio::ip::tcp::endpoint>;
  using Reached = std::function<void(std::shared_ptr<GroupConnection>, const GroupPeer& hub)>;

  GroupDialer(boost::asio::io_context& context, Endpoints endpoints, const Launch& launch,
              double hello_s, Reached reached);

  void dial();
  void dial_again(const std::string& why);  // After a pause; `why` it was in vain.
  void stop();
  // Why the last try was in vain, and what process 0 said against this one: "127.0.0.1:29500:
  // Connection refused".
  std::string describe_problem() const;

  void on_message(GroupConnection& connection, GroupMessage message) override;
  void on_ended(GroupConnection& connection, const std::string& why) override;

 private:
  const boost::asio::ip::tcp::endpoint& endpoint() const { return endpoints_[next_]; }
  void on_connected(const boost::system::error_code& error);
  bool is_connected_to_itself() const;
  void say_hello();

  boost::asio::io_context& context_;
  Endpoints endpoints_;
  std::uint64_t token_;
  int process_;
  double hello_s_, pause_s_;
  Reached reached_;
  std::size_t next_ = 0;
  std::uint64_t try_number_ = 0;
  boost::asio::ip::tcp::socket socket_;
  GroupTimer timer_;  // for a try or the pause after it
  std::shared_ptr<GroupConnection> connection_;
  std::string problem_, objection_;
};

}  // namespace strata
