#include "src/comm/process/group_message.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "src/comm/process/group_agreement.hpp"
#include "src/comm/process/group_peer.hpp"

namespace strata {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t body_max = 4096;

const GroupMessage& sample() {
  static const GroupMessage message{
      .kind = GroupMessageKind::text, .process = 3, .number = 0x1122334455667788, .body = "body"};
  return message;
}

std::string with_byte(std::string bytes, std::size_t at, char value) {
  bytes[at] = value;
  return bytes;
}

GroupMessageParse parse(std::string_view bytes) { return parse_group_message(bytes, body_max); }

TEST(GroupMessage, ComesBackAsItWasSaid) {
  const std::string bytes = encode_group_message(sample());
  const GroupMessageParse got = parse(bytes + "what follows");
  ASSERT_TRUE(got.message);
  EXPECT_EQ(got.used_bytes, bytes.size());
  EXPECT_EQ(got.message->kind, sample().kind);
  EXPECT_EQ(got.message->process, sample().process);
  EXPECT_EQ(got.message->number, sample().number);
  EXPECT_EQ(got.message->body, sample().body);
}

TEST(GroupMessage, HasAFrameThatNeverChangesWithinAVersion) {
  const std::string frame =
      encode_group_message({.kind = GroupMessageKind::hello, .process = 2, .number = 5})
          .substr(0, 24);
  EXPECT_EQ(frame, std::string("STPG\1\0\1\0\2\0\0\0\0\0\0\0\5\0\0\0\0\0\0\0", 24));
}

TEST(GroupMessage, WaitsForTheRest) {
  const std::string bytes = encode_group_message(sample());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const GroupMessageParse got = parse(std::string_view(bytes).substr(0, size));
    EXPECT_FALSE(got.message) << size;
    EXPECT_EQ(got.refusal, "") << size;
  }
}

TEST(GroupMessage, IsRefusedWhenAnyBitIsWrong) {
  const std::string bytes = encode_group_message(sample());
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    const auto flipped = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    // A length that is too large, and allowed, waits for bytes that fill it.
    const std::string wrong = with_byte(bytes, bit / 8, flipped) + std::string(body_max, 'x');
    const GroupMessageParse got = parse(wrong);
    EXPECT_FALSE(got.message) << bit;
    EXPECT_NE(got.refusal, "") << bit;
  }
}

TEST(GroupMessage, IsRefusedByItsFirstBytesWhenItIsSomethingElse) {
  EXPECT_THAT(parse("GET / HTTP/1.1\r\n").refusal, HasSubstr("does not speak"));
  EXPECT_THAT(parse("\x16\x03").refusal, HasSubstr("does not speak"));
}

TEST(GroupMessage, IsRefusedBeforeItsBodyWhenThatIsTooLong) {
  const std::string bytes = encode_group_message({.body = std::string(body_max + 1, 'x')});
  EXPECT_THAT(parse(bytes.substr(0, group_frame_bytes)).refusal,
              HasSubstr("4097 bytes where 4096"));
}

TEST(GroupMessage, IsRefusedBeforeItsBodyInAnotherVersion) {
  const std::string bytes = with_byte(encode_group_message(sample()), 4, 9);
  EXPECT_THAT(parse(bytes.substr(0, group_frame_bytes)).refusal, HasSubstr("version 9"));
}

std::string noise(std::mt19937& random, std::size_t bytes_max) {
  std::string bytes(random() % (bytes_max + 1), '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

// Some messages with a few bytes changed, cut off or added.
std::string damaged_messages(std::mt19937& random) {
  std::string bytes;
  for (std::size_t count = 1 + random() % 3; count > 0; --count) {
    bytes +=
        encode_group_message({.kind = GroupMessageKind{static_cast<std::uint16_t>(random() % 12)},
                              .process = static_cast<std::uint32_t>(random()),
                              .number = random(),
                              .body = noise(random, 100)});
  }
  for (std::size_t count = random() % 3; count > 0; --count)
    bytes[random() % bytes.size()] = static_cast<char>(random());
  if (random() % 3 == 0) bytes.resize(random() % bytes.size());
  return random() % 4 == 0 ? bytes + noise(random, 50) : bytes;
}

// Whatever the bytes: a message that encodes to the bytes it used, a refusal, or a wait for more.
void check_parses(std::string_view bytes) {
  while (true) {
    const GroupMessageParse got = parse(bytes);
    if (!got.message) {
      EXPECT_EQ(got.used_bytes, 0u);
      return;
    }
    ASSERT_EQ(got.refusal, "");
    ASSERT_LE(got.message->body.size(), body_max);
    ASSERT_EQ(encode_group_message(*got.message), bytes.substr(0, got.used_bytes));
    bytes.remove_prefix(got.used_bytes);
  }
}

TEST(GroupMessage, IsNeverReadFromWhatIsNotOne) {
  std::mt19937 random(6);
  for (int round = 0; round < 20000; ++round) {
    check_parses(damaged_messages(random));
    check_parses(noise(random, 100));
  }
}

TEST(GroupPeer, ComesBackAsItWasSaid) {
  const GroupPeer peer{3, 4242, "node-7.cluster_a"};
  const auto got = parse_group_peer(3, encode_group_peer(peer));
  ASSERT_TRUE(got);
  EXPECT_EQ(describe(*got), "process 3 (pid 4242 on node-7.cluster_a)");
}

TEST(GroupPeer, IsRefusedWhenItCouldNotBePrinted) {
  for (const char* body : {"", "1", "1 ", " node", "-1 node", "x node", "1 no de", "1 node\n",
                           "1 \x1b[31m", "99999999999 node", "1  node"}) {
    EXPECT_FALSE(parse_group_peer(1, body)) << body;
  }
  EXPECT_FALSE(parse_group_peer(1, std::string("1 ").append(256, 'a')));
}

TEST(GroupPeer, OfThisProcessCanBeSaid) {
  const GroupPeer self = this_group_peer(1);
  const auto got = parse_group_peer(1, encode_group_peer(self));
  ASSERT_TRUE(got);
  EXPECT_EQ(got->host, self.host);
  EXPECT_EQ(got->pid, self.pid);
}

TEST(GroupToken, TellsJobsApart) {
  const Launch job{.num_processes = 2, .job = "a"};
  EXPECT_EQ(group_token(job), group_token({.process = 1, .num_processes = 2, .job = "a"}));
  EXPECT_NE(group_token(job), group_token({.num_processes = 3, .job = "a"}));
  EXPECT_NE(group_token(job), group_token({.num_processes = 2, .job = "b"}));
}

TEST(GroupAgreement, ShowsShortTextsWhole) {
  EXPECT_EQ(describe_difference("A", "stage: 2\n", "B", "stage: 3\n"),
            "A has \"stage: 2\\n\" where B has \"stage: 3\\n\"");
  EXPECT_EQ(describe_difference("A", "", "B", "\x1b"), "A has \"\" where B has \"\\x1b\"");
}

TEST(GroupAgreement, ShowsLongTextsAroundTheirFirstDifference) {
  const std::string front(5000, 'f'), back(5000, 'b');
  const std::string text =
      describe_difference("A", front + "two" + back, "B", front + "three" + back);
  EXPECT_THAT(text, HasSubstr("...ffff"));
  EXPECT_THAT(text, HasSubstr("ftwobb"));
  EXPECT_THAT(text, HasSubstr("fthreebb"));
  EXPECT_LT(text.size(), 500u);
}

TEST(GroupAgreement, ShowsThatATextIsOnlyTheOthersBeginning) {
  const std::string front(500, 'f');
  EXPECT_THAT(describe_difference("A", front, "B", front + "more"), HasSubstr("fmore\""));
}

}  // namespace
}  // namespace strata
