#pragma once
// The GroupHub is process 0 of a group: all others are connected to it, and it passes on what they
// say. Thread contract: see GroupNode.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "group_listener.hpp"
#include "group_node.hpp"

namespace strata {

class GroupHub final : public GroupNode {
 public:
  GroupHub(boost::asio::io_context& context, boost::asio::ip::tcp::acceptor acceptor,
           const ProcessGroupOptions& options, GroupBoard& board);

  void give_text(std::uint64_t round, std::string text) override;
  void on_message(GroupConnection& connection, GroupMessage message) override;
  void on_ended(GroupConnection& connection, const std::string& why) override;

 private:
  // One process of the others.
  struct Seat {
    GroupPeer peer;
    std::shared_ptr<GroupConnection> connection = {};
    std::optional<std::string> agreement = {};  // Has come, once it is there.
    std::string absence = {};                   // why it is not there
  };

  void begin() override { listener_.open(); }
  void join_is_due() override;
  void tick() override;
  void fail_for_own_reason() override { settle(own_reason_); }
  void pass_on_failure(const std::string& reason) override;
  void close_connections(bool with_goodbye) override;

  std::string admit(std::shared_ptr<GroupConnection> connection, const GroupPeer& peer);
  bool take_agreement(Seat& seat, std::string agreement);
  void decide();
  std::string describe_differences() const;
  std::string describe_absent() const;
  void refuse_all(GroupRefusal kind, const std::string& reason);
  void welcome_all();

  bool obey(Seat& seat, GroupMessage& message);
  bool take_text(const Seat& seat, const GroupMessage& message);
  bool take_goodbye(Seat& seat);
  void lose(Seat& seat, const std::string& why);
  Seat& seat_of(const GroupConnection& connection);
  void send_all(const GroupMessage& message, const Seat* except = nullptr);

  bool has_joined_ = false;
  std::vector<Seat> seats_;  // of process 1, 2 ...
  GroupListener listener_;
};

}  // namespace strata
