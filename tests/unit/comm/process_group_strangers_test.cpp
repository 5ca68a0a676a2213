// Who connects without being a process of the job is dropped, and the job goes on.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "group_testing.hpp"
#include "raw_socket.hpp"
#include "support/unhurried.hpp"

namespace strata {
namespace {

using ::testing::AllOf;
using testing::ghost_hello;
using testing::group_options;
using ::testing::HasSubstr;
using testing::JoinOutcome;
using testing::PortBox;
using testing::RawSocket;
using testing::start_join;
using testing::try_join;

// Process 0 of a job of three, whose other processes come when they are told to.
class ProcessGroupStrangers : public ::testing::Test {
 protected:
  explicit ProcessGroupStrangers(double hello_s = 60) {
    ProcessGroupOptions options = group_options(0, num_processes);
    options.share_port = port_.sharer(0);
    options.hello_s = hello_s;
    hub_ = start_join(options);
  }

  RawSocket stranger() const { return RawSocket::connected(port_.port()); }

  static GroupMessage hello(std::uint32_t process) { return ghost_hello(process, num_processes); }
  // What the stranger is told before it is dropped; empty: nothing.
  static std::string answer_to(RawSocket& stranger, const GroupMessage& message) {
    stranger.say(message);
    const auto answer = stranger.hear();
    if (!answer) return "";
    return answer->kind == GroupMessageKind::known ? "known" : answer->body;
  }

  void expect_that_all_meet() {
    std::vector<std::future<JoinOutcome>> joins;
    for (int process = 1; process < num_processes; ++process) {
      ProcessGroupOptions options = group_options(process, num_processes);
      options.launch.port = port_.port();
      joins.push_back(start_join(options));
    }
    const JoinOutcome first = hub_.get();
    EXPECT_TRUE(first.group) << first.error;
    for (auto& join : joins) {
      const JoinOutcome outcome = join.get();
      EXPECT_TRUE(outcome.group) << outcome.error;
    }
    EXPECT_FALSE(RawSocket().connects(port_.port()));  // Nobody listens any more.
  }

  static constexpr int num_processes = 3;
  PortBox port_;
  std::future<JoinOutcome> hub_;
};

// Process 0 waits for no more than a moment for what a stranger has to say.
class ProcessGroupHalting : public ProcessGroupStrangers {
 protected:
  ProcessGroupHalting() : ProcessGroupStrangers(0.2) {}
};

TEST_F(ProcessGroupHalting, StrangersWhoSayWhatNobodyUnderstandsAreDropped) {
  std::mt19937 random(3);
  for (std::size_t bytes : {1u, 3u, 31u, 100u, 100000u}) {
    RawSocket noisy = stranger();
    std::string noise(bytes, '\0');
    for (char& byte : noise) byte = static_cast<char>(random() | 0x80);
    noisy.send(noise);
    EXPECT_TRUE(noisy.is_closed()) << bytes;
  }
  expect_that_all_meet();
}

TEST_F(ProcessGroupStrangers, WhoAnnounceMuchAreDropped) {
  RawSocket greedy = stranger();
  std::string bytes = encode_group_message(hello(1));
  bytes.replace(12, 4, "\xff\xff\xff\xff");
  greedy.send(bytes.substr(0, group_frame_bytes));
  EXPECT_TRUE(greedy.is_closed());
  RawSocket modest = stranger();
  GroupMessage message = hello(1);
  message.body = std::string(group_hello_bytes_max + 1, 'x');
  modest.send(encode_group_message(message).substr(0, group_frame_bytes));
  EXPECT_TRUE(modest.is_closed());
  expect_that_all_meet();
}

TEST_F(ProcessGroupHalting, StrangersWhoSayNothingAreDropped) {
  RawSocket silent = stranger(), halting = stranger();
  halting.send(encode_group_message(hello(1)).substr(0, 20));
  EXPECT_TRUE(silent.is_closed());
  EXPECT_TRUE(halting.is_closed());
  expect_that_all_meet();
}

TEST_F(ProcessGroupStrangers, WhoComeInCrowdsDoNotKeepOthersOut) {
  std::vector<RawSocket> crowd;
  for (int i = 0; i < 200; ++i) crowd.push_back(stranger());
  expect_that_all_meet();
}

TEST_F(ProcessGroupStrangers, WhoComeAndGoAtOnceDoNoHarm) {
  for (int i = 0; i < 50; ++i) stranger().close();
  for (int i = 0; i < 50; ++i) {
    RawSocket brief = stranger();
    brief.say(hello(1));
    brief.close();
  }
  expect_that_all_meet();
}

TEST_F(ProcessGroupStrangers, OfAnotherJobAreToldSo) {
  RawSocket other = stranger();
  GroupMessage message = hello(1);
  ++message.number;
  EXPECT_THAT(answer_to(other, message), HasSubstr("another job"));
  EXPECT_TRUE(other.is_closed());
  expect_that_all_meet();
}

TEST_F(ProcessGroupStrangers, WhoAreNoProcessOfTheJobAreToldSo) {
  for (std::uint32_t process : {0u, 3u, 0xffffffffu}) {
    RawSocket other = stranger();
    EXPECT_THAT(answer_to(other, hello(process)), HasSubstr("process " + std::to_string(process)));
    EXPECT_TRUE(other.is_closed());
  }
  expect_that_all_meet();
}

TEST_F(ProcessGroupStrangers, WhoseNameCannotBePrintedAreDropped) {
  RawSocket other = stranger();
  GroupMessage message = hello(1);
  message.body = "77 \x1b[31mghost";
  EXPECT_THAT(answer_to(other, message), HasSubstr("does not say where it runs"));
  EXPECT_TRUE(other.is_closed());
  expect_that_all_meet();
}

TEST_F(ProcessGroupStrangers, WhoBeginWithSomethingElseAreDropped) {
  for (auto kind : {GroupMessageKind::text, GroupMessageKind::failed, GroupMessageKind::goodbye}) {
    RawSocket other = stranger();
    other.say({.kind = kind, .process = 1, .number = 1, .body = "x"});
    EXPECT_TRUE(other.is_closed());
  }
  expect_that_all_meet();
}

TEST_F(ProcessGroupStrangers, WhoClaimATakenNumberAreDroppedUntilItIsFree) {
  RawSocket first = stranger(), second = stranger();
  EXPECT_EQ(answer_to(first, hello(1)), "known");
  EXPECT_THAT(answer_to(second, hello(1)),
              AllOf(HasSubstr("process 1 has come already"), HasSubstr("pid 77 on ghost")));
  EXPECT_TRUE(second.is_closed());
  first.close();
  expect_that_all_meet();
}

TEST_F(ProcessGroupStrangers, WhoTalkBeforeAllHaveComeAreDropped) {
  for (auto kind : {GroupMessageKind::text, GroupMessageKind::failed, GroupMessageKind::goodbye,
                    GroupMessageKind::welcome, GroupMessageKind::hello}) {
    RawSocket other = stranger();
    EXPECT_EQ(answer_to(other, hello(1)), "known");
    other.say({.kind = kind, .process = 1, .number = 1, .body = "x"});
    EXPECT_TRUE(other.is_closed());
  }
  expect_that_all_meet();
}

TEST_F(ProcessGroupStrangers, WhoAgreeTwiceAreDropped) {
  RawSocket other = stranger();
  EXPECT_EQ(answer_to(other, hello(1)), "known");
  other.say({.kind = GroupMessageKind::agreement});
  other.say({.kind = GroupMessageKind::agreement});
  EXPECT_TRUE(other.is_closed());
  expect_that_all_meet();
}

TEST(ProcessGroupStranger, IsToldOfWhenAProcessDidNotCome) {
  const auto error_of_joining = [](double join_s) {
    RawSocket stranger;
    ProcessGroupOptions options = group_options(0, 2);
    options.share_port = [&](std::uint16_t port) {  // Before the time to join begins.
      EXPECT_TRUE(stranger.connects(port));
      stranger.send("GET / HTTP/1.1\r\n");
      return port;
    };
    options.join_s = join_s;
    return try_join(options).error;
  };
  const auto was_not_seen = [](const std::string& error) {
    return error.find("dropped") == std::string::npos;
  };
  EXPECT_THAT(unhurried(0.3, error_of_joining, was_not_seen),
              AllOf(HasSubstr("process 1 did not come"), HasSubstr("1 connection was dropped"),
                    HasSubstr("does not speak the group's protocol")));
}

}  // namespace
}  // namespace strata
