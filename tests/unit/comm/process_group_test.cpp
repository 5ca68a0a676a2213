// What a group that has come together does: exchange, fail, leave.

#include "strata/comm/process_group.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <thread>

#include "group_testing.hpp"
#include "src/comm/process/group_message.hpp"

namespace strata {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::exchange_error;
using testing::FailureNote;
using testing::Groups;
using ::testing::HasSubstr;
using testing::join_all;

// Runs `body` for each process on a thread of its own.
void on_each(Groups& groups, const std::function<void(ProcessGroup&)>& body) {
  std::vector<std::thread> threads;
  for (auto& group : groups) threads.emplace_back([&] { body(*group); });
  for (std::thread& thread : threads) thread.join();
}

TEST(ProcessGroup, OfOneProcessNeedsNobody) {
  const auto group = join_process_group({});
  EXPECT_TRUE(group->launch().is_alone());
  EXPECT_THAT(group->exchange("alone"), ElementsAre("alone"));
  group->fail("why");
  EXPECT_EQ(exchange_error(*group), "why");
}

TEST(ProcessGroup, BringsEveryTextToEveryProcess) {
  for (int num_processes : {2, 3, 8}) {
    Groups groups = join_all(num_processes);
    on_each(groups, [&](ProcessGroup& group) {
      const std::string own = "text of " + std::to_string(group.launch().process);
      const std::vector<std::string> texts = group.exchange(own);
      ASSERT_EQ(texts.size(), static_cast<std::size_t>(num_processes));
      for (int process = 0; process < num_processes; ++process)
        EXPECT_EQ(texts[static_cast<std::size_t>(process)], "text of " + std::to_string(process));
    });
  }
}

// A text that each process can tell for each: of every length, with every byte.
std::string text_of(int process, int round) {
  std::mt19937 random(static_cast<unsigned>(1000 * round + process));
  std::string text(random() % (round % 10 == 0 ? 100000 : 100), '\0');
  for (char& byte : text) byte = static_cast<char>(random());
  return text;
}

TEST(ProcessGroup, ExchangesAgainAndAgain) {
  Groups groups = join_all(3);
  on_each(groups, [](ProcessGroup& group) {
    for (int round = 0; round < 100; ++round) {
      const auto texts = group.exchange(text_of(group.launch().process, round));
      for (int process = 0; process < 3; ++process)
        ASSERT_EQ(texts[static_cast<std::size_t>(process)], text_of(process, round));
    }
  });
}

TEST(ProcessGroup, ExchangesTextsUpToTheirBound) {
  Groups groups = join_all(2);
  on_each(groups, [](ProcessGroup& group) {
    EXPECT_THROW(group.exchange(std::string(group_text_bytes_max + 1, 'x')), Error);
    const auto texts = group.exchange(std::string(group_text_bytes_max, 'x'));
    EXPECT_EQ(texts[0].size(), group_text_bytes_max);
    EXPECT_EQ(texts[1].size(), group_text_bytes_max);
  });
}

TEST(ProcessGroup, TellsAllOthersThatAProcessFails) {
  for (std::size_t failing : {0u, 2u}) {
    Groups groups = join_all(3);
    std::vector<std::unique_ptr<FailureNote>> notes;
    for (auto& group : groups) notes.push_back(std::make_unique<FailureNote>(*group));
    groups[failing]->fail("rank 2: out of luck");
    for (std::size_t process = 0; process < 3; ++process) {
      if (process != failing) {
        EXPECT_EQ(notes[process]->wait(), "rank 2: out of luck");
      }
      EXPECT_EQ(exchange_error(*groups[process]), "rank 2: out of luck");
    }
    groups.clear();  // Before the notes.
  }
}

TEST(ProcessGroup, DoesNotTellAProcessOfItsOwnFailure) {
  Groups groups = join_all(2);
  bool is_told = false;
  groups[1]->on_failure([&](const std::string&) { is_told = true; });
  groups[1]->fail("why");
  EXPECT_EQ(exchange_error(*groups[1]), "why");
  groups[1]->on_failure({});
  EXPECT_FALSE(is_told);
}

TEST(ProcessGroup, TellsAtOnceWhoAsksAfterAFailure) {
  Groups groups = join_all(2);
  groups[1]->fail("why");
  EXPECT_EQ(exchange_error(*groups[0]), "why");
  std::string told;
  groups[0]->on_failure([&](const std::string& reason) { told = reason; });
  EXPECT_EQ(told, "why");
}

TEST(ProcessGroup, EndsAnExchangeWhenAProcessFails) {
  Groups groups = join_all(3);
  auto waiting = std::async(std::launch::async, [&] { return exchange_error(*groups[0]); });
  auto also = std::async(std::launch::async, [&] { return exchange_error(*groups[1]); });
  groups[2]->fail("why");
  EXPECT_EQ(waiting.get(), "why");
  EXPECT_EQ(also.get(), "why");
}

TEST(ProcessGroup, KeepsTheFirstReasonOfManyOnAllProcesses) {
  for (int round = 0; round < 20; ++round) {
    Groups groups = join_all(4);
    on_each(groups, [](ProcessGroup& group) {
      group.fail("reason of " + std::to_string(group.launch().process));
    });
    std::set<std::string> reasons;
    for (auto& group : groups) reasons.insert(exchange_error(*group));
    EXPECT_EQ(reasons.size(), 1u);
    EXPECT_THAT(*reasons.begin(), HasSubstr("reason of "));
  }
}

TEST(ProcessGroup, CanFailFromWhereItIsToldOfAFailure) {
  Groups groups = join_all(2);
  groups[0]->on_failure([&](const std::string&) { groups[0]->fail("another"); });
  groups[1]->fail("first");
  EXPECT_EQ(exchange_error(*groups[0]), "first");
}

TEST(ProcessGroup, ShortensALongReason) {
  Groups groups = join_all(2);
  groups[1]->fail(std::string(3 << 20, 'r'));
  EXPECT_EQ(exchange_error(*groups[0]).size(), group_reason_bytes_max);
}

TEST(ProcessGroup, StillSaysWhyWhenItIsDestroyedAtOnce) {
  for (std::size_t failing : {0u, 1u}) {
    Groups groups = join_all(3);
    groups[failing]->fail("last words");
    groups[failing].reset();
    for (auto& group : groups) {
      if (group) {
        EXPECT_EQ(exchange_error(*group), "last words");
      }
    }
  }
}

TEST(ProcessGroup, ThatIsLeftByAProcessGoesOn) {
  Groups groups = join_all(3);
  FailureNote note(*groups[0]);
  groups[1].reset();
  EXPECT_THAT(exchange_error(*groups[0]),
              AllOf(HasSubstr("process 1 (pid "), HasSubstr("has left")));
  groups[2]->fail("later");
  EXPECT_EQ(note.wait(), "later");  // The first that was told: the leaver is no failure.
  groups.clear();
}

TEST(ProcessGroup, EndsAnExchangeWithAProcessThatLeaves) {
  Groups groups = join_all(3);
  auto waiting = std::async(std::launch::async, [&] { return exchange_error(*groups[0]); });
  auto also = std::async(std::launch::async, [&] { return exchange_error(*groups[2]); });
  groups[1].reset();
  EXPECT_THAT(waiting.get(), HasSubstr("process 1"));
  EXPECT_THAT(also.get(), HasSubstr("process 1"));
}

TEST(ProcessGroup, ExchangesNoMoreWhenProcess0HasLeft) {
  Groups groups = join_all(3);
  groups[0].reset();
  for (std::size_t process : {1u, 2u})
    EXPECT_THAT(exchange_error(*groups[process]), HasSubstr("process 0 (pid "));
}

TEST(ProcessGroup, BringsWhatWasGivenBeforeAProcessLeft) {
  for (int round = 0; round < 20; ++round) {
    Groups groups = join_all(3);
    on_each(groups, [&](ProcessGroup& group) {
      EXPECT_THAT(group.exchange("last"), ElementsAre("last", "last", "last"));
      groups[static_cast<std::size_t>(group.launch().process)].reset();
    });
  }
}

// Processes that exchange, fail and leave as chance has it: whatever comes of it, all come to an
// end, and whoever fails does so for a reason that was given.
TEST(ProcessGroup, EndsWhateverItsProcessesDo) {
  for (unsigned round = 0; round < 30; ++round) {
    Groups groups = join_all(4, [](ProcessGroupOptions& options) { options.heartbeat_s = 0.001; });
    on_each(groups, [&](ProcessGroup& group) {
      const auto process = static_cast<std::size_t>(group.launch().process);
      std::mt19937 random(1000 * round + static_cast<unsigned>(process));
      for (int step = 0; step < 20; ++step) {
        if (random() % 32 == 0) break;
        if (random() % 32 == 0) group.fail("given");
        const std::string error = exchange_error(group);
        if (error == "no error") continue;
        EXPECT_TRUE(error == "given" || error.find("has left") != std::string::npos) << error;
        break;
      }
      groups[process].reset();
    });
  }
}

}  // namespace
}  // namespace strata
