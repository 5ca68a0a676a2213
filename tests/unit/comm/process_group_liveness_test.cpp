// Processes that are killed, fall silent or go mad are told of on all the others.

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <vector>

#include "group_testing.hpp"
#include "raw_socket.hpp"
#include "src/comm/process/group_peer.hpp"
#include "support/unhurried.hpp"

namespace strata {
namespace {

using testing::exchange_error;
using testing::FailureNote;
using testing::ghost_hello;
using testing::group_options;
using ::testing::HasSubstr;
using testing::JoinOutcome;
using testing::patience;
using testing::PortBox;
using testing::RawSocket;
using testing::start_join;

constexpr const char* port_variable = "STRATA_TEST_GROUP_PORT";
constexpr const char* process_variable = "STRATA_TEST_GROUP_PROCESS";

ProcessGroupOptions living_options_at(std::uint16_t port, int process, int num_processes) {
  ProcessGroupOptions options = group_options(process, num_processes);
  options.launch.port = port;
  return options;
}

// This test's own program, as process `process` of a job of three: see ProcessGroupChild.
class GroupChild {
 public:
  GroupChild(std::uint16_t port, int process) {
    std::vector<std::string> words{"comm_test", "--gtest_also_run_disabled_tests",
                                   "--gtest_filter=ProcessGroupChild.*"};
    std::vector<std::string> variables{
        std::string(port_variable) + "=" + std::to_string(port),
        std::string(process_variable) + "=" + std::to_string(process)};
    for (char** variable = environ; *variable != nullptr; ++variable)
      variables.emplace_back(*variable);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    if (::posix_spawn(&id_, "/proc/self/exe", &actions, nullptr, pointers(words).data(),
                      pointers(variables).data()) != 0)
      id_ = -1;
    ::posix_spawn_file_actions_destroy(&actions);
  }
  ~GroupChild() { send(SIGKILL); }
  pid_t id() const { return id_; }
  void send(int signal) const {
    if (id_ > 0) ::kill(id_, signal);
    if (id_ > 0 && signal == SIGKILL) ::waitpid(id_, nullptr, 0);
  }

 private:
  static std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> ends;
    for (std::string& text : texts) ends.push_back(text.data());
    ends.push_back(nullptr);
    return ends;
  }

  pid_t id_ = -1;
};

int number_in(const char* variable) {
  const char* text = std::getenv(variable);
  int number = -1;
  if (text != nullptr) std::from_chars(text, text + std::string_view(text).size(), number);
  return number;
}

// Not a test: what a GroupChild runs. It waits in its second exchange, which never ends.
TEST(ProcessGroupChild, DISABLED_JoinsAndWaits) {
  const int process = number_in(process_variable);
  if (process < 0) GTEST_SKIP() << "runs as a child of other tests";
  ::alarm(static_cast<unsigned>(patience.count()));
  const auto group = join_process_group(
      living_options_at(static_cast<std::uint16_t>(number_in(port_variable)), process, 3));
  group->exchange(std::to_string(process));
  exchange_error(*group);
}

// Two processes of a job of three, here, and the third as a child.
struct JobWithChild {
  explicit JobWithChild(int child_process, const testing::ChangeOptions& change = {})
      : child(reserved.port(), child_process) {
    std::vector<std::future<JoinOutcome>> joins;
    for (int process = 0; process < 3; ++process) {
      if (process == child_process) continue;
      ProcessGroupOptions options = living_options_at(reserved.port(), process, 3);
      if (change) change(options);
      joins.push_back(start_join(options));
    }
    for (auto& join : joins) {
      JoinOutcome outcome = join.get();
      if (!outcome.group) throw Error(outcome.error);
      groups.push_back(std::move(outcome.group));
      notes.push_back(std::make_unique<FailureNote>(*groups.back()));
    }
    auto other = std::async(std::launch::async, [&] { return groups[1]->exchange("x"); });
    groups[0]->exchange("x");
    other.get();
  }
  ~JobWithChild() { groups.clear(); }  // Before the notes.

  RawSocket reserved = RawSocket::bound();
  GroupChild child;
  std::vector<std::unique_ptr<FailureNote>> notes;
  testing::Groups groups;
};

TEST(ProcessGroupLiveness, TellsAllWhichProcessWasKilled) {
  for (int killed : {0, 1}) {
    JobWithChild job(killed);
    job.child.send(SIGKILL);
    const GroupPeer peer{killed, static_cast<std::uint32_t>(job.child.id()),
                         this_group_peer(0).host};
    for (auto& note : job.notes)
      EXPECT_EQ(note->wait(), describe(peer) + " is gone: its connection was closed");
    for (auto& group : job.groups) EXPECT_THAT(exchange_error(*group), HasSubstr("is gone"));
  }
}

// Jobs whose processes must not be silent for long. None where one was before it had joined.
struct ImpatientJobs {
  explicit ImpatientJobs(double seconds) : silent_s(seconds) {}
  static std::unique_ptr<ImpatientJobs> made(double silent_s) {
    try {
      return std::make_unique<ImpatientJobs>(silent_s);
    } catch (const Error&) {
      return nullptr;
    }
  }
  const double silent_s;
  const testing::ChangeOptions change = [this](ProcessGroupOptions& options) {
    options.silent_s = silent_s;
  };
  std::array<JobWithChild, 2> jobs{JobWithChild(0, change), JobWithChild(1, change)};
};

TEST(ProcessGroupLiveness, TellsAllWhichProcessStandsStill) {
  const auto impatient =
      unhurried(2, ImpatientJobs::made, [](const auto& made) { return made == nullptr; });
  ASSERT_NE(impatient, nullptr);
  for (const JobWithChild& job : impatient->jobs) job.child.send(SIGSTOP);
  for (int stopped : {0, 1}) {
    const JobWithChild& job = impatient->jobs[static_cast<std::size_t>(stopped)];
    const GroupPeer peer{stopped, static_cast<std::uint32_t>(job.child.id()),
                         this_group_peer(0).host};
    for (const auto& note : job.notes)
      EXPECT_EQ(note->wait(), describe(peer) + fmt::format(" is gone: it said nothing for {:g} s",
                                                           impatient->silent_s));
  }
}

// Process 0, with a process 1 that is the test's and says all that it has to at once: there may be
// little time.
struct HubWithGhost {
  explicit HubWithGhost(double silent_s) {
    ProcessGroupOptions options = group_options(0, 2);
    options.share_port = port.sharer(0);
    options.silent_s = silent_s;
    auto join = start_join(options);
    ghost.emplace(RawSocket::connected(port.port()));
    ghost->send(encode_group_message(ghost_hello(1, 2)) +
                encode_group_message({.kind = GroupMessageKind::agreement}));
    JoinOutcome outcome = join.get();
    if (!outcome.group) throw Error(outcome.error);
    group = std::move(outcome.group);
    for (const auto kind : {GroupMessageKind::known, GroupMessageKind::welcome}) {
      const auto heard = ghost->hear();
      EXPECT_TRUE(heard && heard->kind == kind);
    }
  }
  PortBox port;
  std::optional<RawSocket> ghost;
  std::unique_ptr<ProcessGroup> group;
};

TEST(ProcessGroupLiveness, TellsOfAProcessThatSaysNothing) {
  HubWithGhost job(0.3);
  EXPECT_EQ(exchange_error(*job.group),
            "process 1 (pid 77 on ghost) is gone: it said nothing for 0.3 s");
}

TEST(ProcessGroupLiveness, AnswersAProcessThatFailsWithTheJobsReason) {
  HubWithGhost job(60);
  job.ghost->say({.kind = GroupMessageKind::failed, .process = 1, .body = "mine"});
  const auto answer = job.ghost->hear();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->kind, GroupMessageKind::failed);
  EXPECT_EQ(answer->body, "mine");
  job.ghost->close();
}

TEST(ProcessGroupLiveness, TakesAProcessThatGoesMadForGone) {
  const auto reason_after = [](const std::string& bytes) {
    HubWithGhost job(60);
    job.ghost->send(bytes);
    return exchange_error(*job.group);
  };
  const auto broken =
      HasSubstr("process 1 (pid 77 on ghost) is gone: it broke the group's protocol");
  const auto text = [](std::uint32_t process, std::uint64_t round) {
    return encode_group_message(
        {.kind = GroupMessageKind::text, .process = process, .number = round, .body = "x"});
  };
  EXPECT_THAT(reason_after(text(0, 1)), broken);
  EXPECT_THAT(reason_after(text(1, 2)), broken);
  EXPECT_THAT(reason_after(encode_group_message({.kind = GroupMessageKind::welcome})), broken);
  EXPECT_THAT(reason_after(encode_group_message({.kind = GroupMessageKind::agreement})), broken);
  EXPECT_THAT(reason_after("garbage"), HasSubstr("does not speak the group's protocol"));
}

TEST(ProcessGroupLiveness, TakesAProcessThatSaysTooMuchForGone) {
  HubWithGhost job(60);
  std::string bytes = encode_group_message({.kind = GroupMessageKind::text, .process = 1});
  bytes.replace(12, 4, std::string("\0\0\x20\0", 4));
  job.ghost->send(bytes);
  EXPECT_THAT(exchange_error(*job.group), HasSubstr("2097152 bytes where 1048576 are allowed"));
}

// Process 1, with a process 0 that is the test's and says all that it has to at once.
struct SpokeWithGhost {
  explicit SpokeWithGhost(double silent_s) {
    ProcessGroupOptions options = living_options_at(listener.port(), 1, 3);
    options.silent_s = silent_s;
    auto join = start_join(options);
    ghost.emplace(listener.accepted());
    ghost->send(encode_group_message({.kind = GroupMessageKind::known, .body = "66 ghost"}) +
                encode_group_message({.kind = GroupMessageKind::welcome}));
    JoinOutcome outcome = join.get();
    if (!outcome.group) throw Error(outcome.error);
    group = std::move(outcome.group);
    for (const auto kind : {GroupMessageKind::hello, GroupMessageKind::agreement}) {
      const auto heard = ghost->hear();
      EXPECT_TRUE(heard && heard->kind == kind);
    }
  }
  RawSocket listener = RawSocket::listening();
  std::optional<RawSocket> ghost;
  std::unique_ptr<ProcessGroup> group;
};

TEST(ProcessGroupLiveness, TellsOfAProcess0ThatSaysNothing) {
  SpokeWithGhost job(0.3);
  EXPECT_EQ(exchange_error(*job.group),
            "process 0 (pid 66 on ghost) is gone: it said nothing for 0.3 s");
}

TEST(ProcessGroupLiveness, TakesAProcess0ThatGoesMadForGone) {
  for (const GroupMessage& message :
       {GroupMessage{.kind = GroupMessageKind::text, .process = 1, .number = 1},
        GroupMessage{.kind = GroupMessageKind::text, .process = 3, .number = 1},
        GroupMessage{.kind = GroupMessageKind::text, .process = 2, .number = 9},
        GroupMessage{.kind = GroupMessageKind::goodbye, .process = 3},
        GroupMessage{.kind = GroupMessageKind::hello}}) {
    SpokeWithGhost job(60);
    job.ghost->say(message);
    EXPECT_EQ(exchange_error(*job.group),
              "process 0 (pid 66 on ghost) is gone: it broke the group's protocol");
  }
}

TEST(ProcessGroupLiveness, KeepsItsOwnReasonWhenProcess0DiesBeforeItAnswers) {
  SpokeWithGhost job(60);
  job.group->fail("mine");
  const auto heard = job.ghost->hear();
  ASSERT_TRUE(heard);
  EXPECT_EQ(heard->body, "mine");
  job.ghost->close();
  EXPECT_EQ(exchange_error(*job.group), "mine");
}

TEST(ProcessGroupLiveness, TakesAnothersReasonWhenThatCameFirst) {
  SpokeWithGhost job(60);
  FailureNote note(*job.group);
  job.group->fail("mine");
  job.ghost->say({.kind = GroupMessageKind::failed, .process = 2, .body = "another's"});
  EXPECT_EQ(exchange_error(*job.group), "another's");
  EXPECT_EQ(note.wait(), "another's");
  job.ghost->close();
  job.group.reset();
}

TEST(ProcessGroupLiveness, LeavesSoonThoughTheOtherEndStandsStill) {
  SpokeWithGhost job(60);
  job.group.reset();  // Ends, though the ghost neither answers nor closes.
  const auto heard = job.ghost->hear();
  ASSERT_TRUE(heard);
  EXPECT_EQ(heard->kind, GroupMessageKind::goodbye);
}

}  // namespace
}  // namespace strata
