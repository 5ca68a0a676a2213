#pragma once
// What the processes of a group say to each other: a frame of 32 bytes and a body. Little-endian:
//
//   magic u32 | version u16 | kind u16 | process u32 | body bytes u32 | number u64 | checksum u64
//
// The checksum is of the frame before it and the body. Bytes come from anybody: a frame is judged
// before its body is waited for, so nobody makes this process keep more than it has agreed to.
// Thread contract: any thread.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace strata {

enum class GroupMessageKind : std::uint16_t {
  hello = 1,  // To process 0: `process` says who it is; number: the job's token.
  known,      // Process 0's answer: says who it is;
  dropped,    // ... or why it will not have this one. The connection ends.
  agreement,  // Then, to process 0.
  welcome,    // From process 0: all have come;
  refused,    // ... or why the job does not begin; number: a GroupRefusal.
  alive,
  text,     // Of `process`, for exchange `number`.
  failed,   // Why the job fails.
  goodbye,  // `process` is done; process 0 tells the others who that is.
};

enum class GroupRefusal : std::uint64_t { absent, differs };

inline constexpr std::size_t group_frame_bytes = 32;
inline constexpr std::size_t group_text_bytes_max = std::size_t{1} << 20;
inline constexpr std::size_t group_reason_bytes_max = std::size_t{1} << 16;
inline constexpr std::size_t group_hello_bytes_max = 512;  // Of the body, from a stranger.

struct GroupMessage {
  GroupMessageKind kind = GroupMessageKind::alive;
  std::uint32_t process = 0;
  std::uint64_t number = 0;
  std::string body = {};
};

std::string encode_group_message(const GroupMessage& message);

// What stands at the front of some bytes.
struct GroupMessageParse {
  std::optional<GroupMessage> message;
  std::size_t used_bytes = 0;  // by the message
  std::string refusal;  // why these bytes never become one; without this and a message: too few yet
};
GroupMessageParse parse_group_message(std::string_view bytes, std::size_t body_bytes_max);

}  // namespace strata
