// How processes come together, and why they do not.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "group_testing.hpp"
#include "raw_socket.hpp"
#include "support/unhurried.hpp"

namespace strata {
namespace {

using ::testing::AllOf;
using testing::ghost_hello;
using testing::group_options;
using testing::Groups;
using ::testing::HasSubstr;
using testing::join_all;
using testing::join_some;
using testing::JoinOutcome;
using ::testing::Not;
using testing::RawSocket;
using testing::start_join;
using testing::try_join;

std::string at(std::uint16_t port) { return "127.0.0.1:" + std::to_string(port); }

ProcessGroupOptions options_at(std::uint16_t port, int process, int num_processes) {
  ProcessGroupOptions options = group_options(process, num_processes);
  options.launch.port = port;
  return options;
}

// True if both join.
bool two_meet(const std::string& address) {
  const Groups groups =
      join_all(2, [&](ProcessGroupOptions& options) { options.launch.address = address; });
  return groups.size() == 2;
}

TEST(ProcessGroupJoin, WaitsForProcess0) {
  const RawSocket reserved = RawSocket::bound();
  RawSocket listener = RawSocket::listening(reserved.port());
  auto other = start_join(options_at(reserved.port(), 1, 2));
  listener.accepted().close();  // It has been here, in vain.
  listener.close();
  const JoinOutcome first = try_join(options_at(reserved.port(), 0, 2));
  EXPECT_TRUE(first.group) << first.error;
  const JoinOutcome second = other.get();
  EXPECT_TRUE(second.group) << second.error;
}

TEST(ProcessGroupJoin, TakesNamesAndAddressesOfBothKinds) {
  EXPECT_TRUE(two_meet("127.0.0.1"));
  EXPECT_TRUE(two_meet("localhost"));
}

TEST(ProcessGroupJoin, TakesAddressesOfVersion6) {
  const int fd = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in6 address = {};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  const bool has_6 =
      fd >= 0 && ::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  if (fd >= 0) ::close(fd);
  if (!has_6) GTEST_SKIP() << "this host has no IPv6 loopback";
  EXPECT_TRUE(two_meet("::1"));
  EXPECT_TRUE(two_meet("[::1]"));
}

struct JoinWithGhost {
  std::unique_ptr<RawSocket> ghost = std::make_unique<RawSocket>();
  JoinOutcome outcome = {};
  double join_s = 0;
};

// Process 0 of four, to which process 2 came before its time to join began, and nobody else.
JoinWithGhost join_with_ghost(const std::string& agreement, double join_s) {
  JoinWithGhost made{.join_s = join_s};
  ProcessGroupOptions options = group_options(0, 4);
  options.agreement = "stage: 2";
  options.join_s = join_s;
  options.share_port = [&](std::uint16_t port) {
    EXPECT_TRUE(made.ghost->connects(port));
    made.ghost->say(ghost_hello(2, 4));
    made.ghost->say({.kind = GroupMessageKind::agreement, .body = agreement});
    return port;
  };
  made.outcome = try_join(options);
  return made;
}

JoinWithGhost join_with_ghost(const std::string& agreement) {
  JoinWithGhost made = unhurried(
      0.3, [&](double join_s) { return join_with_ghost(agreement, join_s); },
      [](const JoinWithGhost& late) {
        return late.outcome.error.find("process 2 did not come") != std::string::npos;
      });
  const auto heard = made.ghost->hear();
  EXPECT_TRUE(heard && heard->kind == GroupMessageKind::known);
  return made;
}

TEST(ProcessGroupJoin, NamesWhoDidNotComeToAllWhoDid) {
  const auto [ghost, outcome, join_s] = join_with_ghost("stage: 2");
  EXPECT_FALSE(outcome.is_config_error);
  EXPECT_THAT(outcome.error,
              AllOf(HasSubstr("process 1 did not come"), HasSubstr("process 3 did not come"),
                    Not(HasSubstr("process 2")), HasSubstr(fmt::format("within {:g} s", join_s))));
  const auto heard = ghost->hear();
  ASSERT_TRUE(heard);
  EXPECT_EQ(heard->kind, GroupMessageKind::refused);
  EXPECT_EQ(heard->body, outcome.error);
}

TEST(ProcessGroupJoin, ShowsADifferenceEvenIfNotAllCome) {
  const JoinOutcome outcome = join_with_ghost("stage: 3").outcome;
  EXPECT_TRUE(outcome.is_config_error);
  EXPECT_THAT(outcome.error, HasSubstr("process 2 (pid 77 on ghost) has \"stage: 3\""));
}

TEST(ProcessGroupJoin, NamesOnlySomeOfManyWhoDidNotCome) {
  const auto outcomes =
      join_some({0}, 100, [](ProcessGroupOptions& options) { options.join_s = 0.1; });
  EXPECT_THAT(outcomes[0].error, AllOf(HasSubstr("process 8 did"), HasSubstr("and 91 more"),
                                       Not(HasSubstr("process 9 did"))));
}

TEST(ProcessGroupJoin, NamesTheAddressWhereNobodyWas) {
  const RawSocket reserved = RawSocket::bound();
  ProcessGroupOptions options = options_at(reserved.port(), 1, 2);
  options.join_s = 0.2;
  EXPECT_THAT(try_join(options).error,
              AllOf(HasSubstr(at(reserved.port())), HasSubstr("Connection refused"),
                    HasSubstr("MASTER_ADDR")));
}

TEST(ProcessGroupJoin, AdvisesWhereLoopbackCannotLeadToProcess0) {
  const RawSocket reserved = RawSocket::bound();
  ProcessGroupOptions options = options_at(reserved.port(), 1, 2);
  options.launch.num_local_processes = 1;
  options.join_s = 0.2;
  EXPECT_THAT(try_join(options).error, HasSubstr("several hosts"));
}

TEST(ProcessGroupJoin, RefusesAPortThatIsTaken) {
  const RawSocket listener = RawSocket::listening();
  const JoinOutcome outcome = try_join(options_at(listener.port(), 0, 2));
  EXPECT_TRUE(outcome.is_config_error);
  EXPECT_THAT(outcome.error, AllOf(HasSubstr(at(listener.port())), HasSubstr("set MASTER_PORT")));
}

TEST(ProcessGroupJoin, RefusesAnAddressOfAnotherHost) {
  ProcessGroupOptions options = options_at(29500, 0, 2);
  options.launch.address = "192.0.2.1";  // For documentation; no host has it.
  const JoinOutcome outcome = try_join(options);
  EXPECT_TRUE(outcome.is_config_error);
  EXPECT_THAT(outcome.error, AllOf(HasSubstr("192.0.2.1:29500"), HasSubstr("set MASTER_ADDR")));
}

TEST(ProcessGroupJoin, RefusesToGuessAPort) {
  const JoinOutcome outcome = try_join(group_options(0, 2));
  EXPECT_TRUE(outcome.is_config_error);
  EXPECT_THAT(outcome.error, HasSubstr("MASTER_PORT"));
}

TEST(ProcessGroupJoin, EndsForAllWhenProcess0HasNoPort) {
  const auto outcomes = join_some(
      {0, 1}, 2, [](ProcessGroupOptions& options) { options.launch.address = "192.0.2.1"; });
  EXPECT_TRUE(outcomes[0].is_config_error);
  EXPECT_THAT(outcomes[1].error, HasSubstr("process 0 could not listen"));
}

TEST(ProcessGroupJoin, DoesNotShareAPortThatIsTold) {
  const RawSocket reserved = RawSocket::bound();
  const auto outcomes = join_some({0, 1}, 2, [&](ProcessGroupOptions& options) {
    options.launch.port = reserved.port();
    options.share_port = [](std::uint16_t) -> std::uint16_t { throw Error("asked in vain"); };
  });
  for (const JoinOutcome& outcome : outcomes) EXPECT_TRUE(outcome.group) << outcome.error;
}

TEST(ProcessGroupJoin, ShowsAllProcessesWhatTheyDoNotAgreeOn) {
  const auto outcomes = join_some({0, 1, 2}, 3, [](ProcessGroupOptions& options) {
    options.agreement = options.launch.process == 2 ? "stage: 3" : "stage: 2";
  });
  for (const JoinOutcome& outcome : outcomes) {
    EXPECT_TRUE(outcome.is_config_error);
    EXPECT_THAT(outcome.error, AllOf(HasSubstr("process 0 (pid"), HasSubstr("has \"stage: 2\""),
                                     HasSubstr("process 2 (pid"), HasSubstr("has \"stage: 3\"")));
  }
}

TEST(ProcessGroupJoin, ComparesAgreementsUpToTheirBound) {
  std::string agreement(group_text_bytes_max, 'a');
  const auto with = [&](ProcessGroupOptions& options) { options.agreement = agreement; };
  EXPECT_EQ(join_all(2, with).size(), 2u);
  agreement += 'a';
  ProcessGroupOptions longer = options_at(1, 1, 2);
  with(longer);
  EXPECT_TRUE(try_join(longer).is_config_error);
}

TEST(ProcessGroupJoin, BringsTogetherOnlyProcessesOfOneJob) {
  const RawSocket reserved = RawSocket::bound();
  ProcessGroupOptions stranger = options_at(reserved.port(), 1, 2);
  stranger.launch.job = "another";
  stranger.join_s = 0.5;
  ProcessGroupOptions hub = options_at(reserved.port(), 0, 2);
  hub.launch.job = "one";
  auto first = start_join(hub);
  const JoinOutcome outcome = try_join(stranger);
  EXPECT_FALSE(outcome.is_config_error);
  EXPECT_THAT(outcome.error, HasSubstr(at(reserved.port())));
  ProcessGroupOptions other = options_at(reserved.port(), 1, 2);
  other.launch.job = "one";
  EXPECT_TRUE(try_join(other).group);
  EXPECT_TRUE(first.get().group);
}

TEST(ProcessGroupJoin, EndsWhenTheAddressIsAnotherServices) {
  const RawSocket listener = RawSocket::listening();
  ProcessGroupOptions options = options_at(listener.port(), 1, 2);
  options.join_s = 1;
  auto join = start_join(options);
  RawSocket asked = listener.accepted();
  asked.send("HTTP/1.1 400 Bad Request\r\n\r\n");
  EXPECT_TRUE(asked.is_closed());
  EXPECT_THAT(join.get().error, HasSubstr(at(listener.port())));
}

TEST(ProcessGroupJoin, SaysWhatProcess0HadAgainstAProcess) {
  const auto error_of_joining = [](double join_s) {
    const RawSocket listener = RawSocket::listening();
    ProcessGroupOptions options = options_at(listener.port(), 1, 2);
    options.join_s = join_s;
    auto join = start_join(options);
    RawSocket asked = listener.accepted();
    asked.hear();
    asked.say({.kind = GroupMessageKind::dropped, .body = "it is \x1b[31mthe second"});
    EXPECT_TRUE(asked.is_closed());
    return join.get().error;
  };
  const auto was_dropped_too_late = [](const std::string& error) {
    return error.find("no answer yet") != std::string::npos;
  };
  EXPECT_THAT(unhurried(0.5, error_of_joining, was_dropped_too_late),
              HasSubstr("it is \\x1b[31mthe second"));
}

TEST(ProcessGroupJoin, TriesAgainWhenProcess0IsGoneWhileAllAreStillToCome) {
  const RawSocket listener = RawSocket::listening();
  auto join = start_join(options_at(listener.port(), 1, 2));
  for (int attempt = 0; attempt < 2; ++attempt) {
    RawSocket asked = listener.accepted();
    ASSERT_TRUE(asked.hear());
    asked.say({.kind = GroupMessageKind::known, .body = "1 ghost"});
    EXPECT_EQ(asked.hear()->kind, GroupMessageKind::agreement);
  }
  RawSocket asked = listener.accepted();
  ASSERT_TRUE(asked.hear());
  asked.say({.kind = GroupMessageKind::known, .body = "1 ghost"});
  asked.say({.kind = GroupMessageKind::welcome});
  const JoinOutcome outcome = join.get();
  EXPECT_TRUE(outcome.group) << outcome.error;
  asked.close();
}

}  // namespace
}  // namespace strata
