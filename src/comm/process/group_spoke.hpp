#pragma once
// The GroupSpoke is a process of a group other than process 0, which it holds a connection to.
// Thread contract: see GroupNode.

#include <memory>
#include <string>

#include "group_dialer.hpp"
#include "group_node.hpp"

namespace strata {

class GroupSpoke final : public GroupNode {
 public:
  GroupSpoke(boost::asio::io_context& context, GroupDialer::Endpoints endpoints,
             const ProcessGroupOptions& options, GroupBoard& board);

  void give_text(std::uint64_t round, std::string text) override;
  void on_message(GroupConnection& connection, GroupMessage message) override;
  void on_ended(GroupConnection& connection, const std::string& why) override;

 private:
  void begin() override { dialer_.dial(); }
  void join_is_due() override;
  void tick() override;
  void fail_for_own_reason() override;
  void pass_on_failure(const std::string&) override {}  // It came from process 0.
  void close_connections(bool with_goodbye) override;

  void on_reached(std::shared_ptr<GroupConnection> connection, const GroupPeer& hub);
  bool obey(GroupMessage& message);
  bool take_verdict(const GroupMessage& message);
  bool take_text(GroupMessage& message);
  bool take_goodbye(const GroupMessage& message);
  void lose_hub(const std::string& why);
  void refuse_absent();

  GroupDialer dialer_;
  GroupPeer hub_;
  std::shared_ptr<GroupConnection> connection_;  // while process 0 knows this one
  bool has_joined_ = false, is_overdue_ = false;
  std::string address_advice_;
};

}  // namespace strata
