#pragma once
// A GroupNode is one process's part in a group: process 0 is the hub, the others hold one
// connection to it. What is common to both is here: heartbeats, the time to join, and that a job
// has one reason to fail.
//
// Thread contract: the group's own thread alone, after construction.

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "group_board.hpp"
#include "group_connection.hpp"
#include "group_peer.hpp"
#include "group_timer.hpp"
#include "strata/comm/process_group.hpp"

namespace strata {

using ToldOfFailure = std::function<void(const std::string& reason)>;

class GroupNode : public GroupReceiver {
 public:
  virtual ~GroupNode() = default;

  void start();  // What has become of it is told by the board.
  virtual void give_text(std::uint64_t round, std::string text) = 0;
  void fail(const std::string& reason);
  void set_told(ToldOfFailure told);
  // With a goodbye, unless the job has failed. Afterwards nothing is begun, and the io_context runs
  // out within moments.
  void leave();

 protected:
  GroupNode(boost::asio::io_context& context, const ProcessGroupOptions& options,
            GroupBoard& board);

  virtual void begin() = 0;
  virtual void join_is_due() = 0;
  virtual void tick() = 0;  // each heartbeat
  virtual void fail_for_own_reason() = 0;
  virtual void pass_on_failure(const std::string& reason) = 0;
  virtual void close_connections(bool with_goodbye) = 0;

  void end_join() { join_limit_.cancel(); }
  void settle(const std::string& reason);  // The job's first reason.
  void watch(GroupConnection& connection) { connection.tick(quiet_ticks_max_, options_.silent_s); }

  const ProcessGroupOptions options_;
  const GroupPeer self_;
  GroupBoard& board_;
  std::string failure_, own_reason_;

 private:
  void beat();
  void tell();

  double heartbeat_s_;
  int quiet_ticks_max_;
  GroupTimer heartbeat_, join_limit_;
  ToldOfFailure told_;
};

std::unique_ptr<GroupNode> make_group_hub(boost::asio::io_context& context,
                                          const ProcessGroupOptions& options, GroupBoard& board);
std::unique_ptr<GroupNode> make_group_spoke(boost::asio::io_context& context,
                                            const ProcessGroupOptions& options, GroupBoard& board);

}  // namespace strata
