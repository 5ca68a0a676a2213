// How the processes of a group come together at process 0.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "group_address.hpp"
#include "group_agreement.hpp"
#include "group_hub.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

constexpr std::size_t named_max = 8;

}  // namespace

std::string GroupHub::admit(std::shared_ptr<GroupConnection> connection, const GroupPeer& peer) {
  Seat& seat = seats_[static_cast<std::size_t>(peer.process - 1)];
  if (seat.connection)
    return fmt::format("process {} has come already, as pid {} on {}", peer.process, seat.peer.pid,
                       seat.peer.host);
  connection->set_receiver(*this);
  connection->set_body_bytes_max(group_text_bytes_max);
  connection->send({.kind = GroupMessageKind::known, .body = encode_group_peer(self_)});
  seat = Seat{.peer = peer, .connection = std::move(connection)};
  return "";
}

bool GroupHub::take_agreement(Seat& seat, std::string agreement) {
  if (has_joined_ || seat.agreement) return false;
  seat.agreement = std::move(agreement);
  if (std::ranges::all_of(seats_, [](const Seat& each) { return each.agreement.has_value(); }))
    decide();
  return true;
}

void GroupHub::decide() {
  end_join();
  const std::string differences = describe_differences();
  if (differences.empty()) return welcome_all();
  refuse_all(GroupRefusal::differs, differences);
}

// When the time is over, what is known to be wrong tells more than who is missing.
void GroupHub::join_is_due() {
  const std::string differences = describe_differences();
  if (!differences.empty()) return refuse_all(GroupRefusal::differs, differences);
  refuse_all(GroupRefusal::absent, describe_absent());
}

std::string GroupHub::describe_differences() const {
  std::vector<const Seat*> others;
  for (const Seat& seat : seats_) {
    if (seat.agreement && *seat.agreement != options_.agreement) others.push_back(&seat);
  }
  if (others.empty()) return "";
  const Seat& first = *others.front();
  std::string text = fmt::format("the processes of this job do not run the same thing: {}",
                                 describe_difference(describe(self_), options_.agreement,
                                                     describe(first.peer), *first.agreement));
  if (others.size() > 1) text += fmt::format(", and {} more differ", others.size() - 1);
  return text + "; start all with the same program and config";
}

std::string GroupHub::describe_absent() const {
  std::string names;
  std::size_t num_absent = 0;
  for (std::size_t i = 0; i < seats_.size(); ++i) {
    if (seats_[i].agreement || ++num_absent > named_max) continue;
    if (num_absent > 1) names += ", ";
    names += seats_[i].absence.empty() ? fmt::format("process {} did not come", i + 1)
                                       : seats_[i].absence;
  }
  if (num_absent > named_max) names += fmt::format(", and {} more", num_absent - named_max);
  return fmt::format(
             "not all {} processes of the job came to process 0 at {} within {:g} s: {}{}; "
             "start all, with the same MASTER_ADDR and MASTER_PORT, and see why one ended",
             seats_.size() + 1, to_text(listener_.endpoint()), options_.join_s, names,
             listener_.describe_dropped()) +
         address_advice(options_.launch, {listener_.endpoint()});
}

void GroupHub::refuse_all(GroupRefusal kind, const std::string& reason) {
  send_all({.kind = GroupMessageKind::refused,
            .number = static_cast<std::uint64_t>(kind),
            .body = reason});
  close_connections(false);
  board_.refuse(kind, reason);
}

void GroupHub::welcome_all() {
  has_joined_ = true;
  listener_.close();
  send_all({.kind = GroupMessageKind::welcome});
  board_.set_joined();
}

}  // namespace strata
