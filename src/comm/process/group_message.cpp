#include "group_message.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>

#include "strata/core/error.hpp"

namespace strata {
namespace {

constexpr std::uint32_t magic = 0x47505453;  // "STPG"
constexpr std::uint16_t version = 1;
constexpr std::size_t checksum_at = 24;

template <typename T>
void append(std::string& bytes, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i)
    bytes += static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i) & 0xff);
}

template <typename T>
T number_at(std::string_view bytes, std::size_t at) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i)
    value |= std::uint64_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  return static_cast<T>(value);
}

std::uint64_t checksum(std::string_view frame, std::string_view body) {
  return XXH3_64bits_withSeed(body.data(), body.size(), XXH3_64bits(frame.data(), checksum_at));
}

// Noise is told by its first bytes.
bool begins_like_a_frame(std::string_view bytes) {
  std::string front;
  append(front, magic);
  const std::size_t size = std::min(bytes.size(), front.size());
  return bytes.substr(0, size) == std::string_view(front).substr(0, size);
}

bool is_kind(std::uint16_t kind) {
  return kind >= static_cast<std::uint16_t>(GroupMessageKind::hello) &&
         kind <= static_cast<std::uint16_t>(GroupMessageKind::goodbye);
}

// Why a whole frame cannot be one of ours, or empty.
std::string frame_refusal(std::string_view frame, std::size_t body_bytes_max) {
  const auto spoken = number_at<std::uint16_t>(frame, 4);
  if (spoken != version)
    return fmt::format("it speaks version {} of the protocol, this process version {}", spoken,
                       version);
  if (!is_kind(number_at<std::uint16_t>(frame, 6))) return "it sent a message of no known kind";
  const auto body_bytes = number_at<std::uint32_t>(frame, 12);
  if (body_bytes <= body_bytes_max) return "";
  return fmt::format("it announced a message of {} bytes where {} are allowed", body_bytes,
                     body_bytes_max);
}

GroupMessageParse refused_bytes(std::string why) {
  return {.message = std::nullopt, .refusal = std::move(why)};
}

}  // namespace

std::string encode_group_message(const GroupMessage& message) {
  ensure(message.body.size() <= group_text_bytes_max);
  std::string bytes;
  bytes.reserve(group_frame_bytes + message.body.size());
  append(bytes, magic);
  append(bytes, version);
  append(bytes, static_cast<std::uint16_t>(message.kind));
  append(bytes, message.process);
  append(bytes, static_cast<std::uint32_t>(message.body.size()));
  append(bytes, message.number);
  append(bytes, checksum(bytes, message.body));
  return bytes += message.body;
}

GroupMessageParse parse_group_message(std::string_view bytes, std::size_t body_bytes_max) {
  if (!begins_like_a_frame(bytes)) return refused_bytes("it does not speak the group's protocol");
  if (bytes.size() < group_frame_bytes) return {};
  const std::string_view frame = bytes.substr(0, group_frame_bytes);
  if (std::string why = frame_refusal(frame, body_bytes_max); !why.empty())
    return refused_bytes(std::move(why));
  const auto body_bytes = number_at<std::uint32_t>(frame, 12);
  if (bytes.size() - group_frame_bytes < body_bytes) return {};
  const std::string_view body = bytes.substr(group_frame_bytes, body_bytes);
  if (number_at<std::uint64_t>(frame, checksum_at) != checksum(frame, body))
    return refused_bytes("it sent a message whose checksum is wrong");
  return {.message = GroupMessage{.kind = GroupMessageKind{number_at<std::uint16_t>(frame, 6)},
                                  .process = number_at<std::uint32_t>(frame, 8),
                                  .number = number_at<std::uint64_t>(frame, 16),
                                  .body = std::string(body)},
          .used_bytes = group_frame_bytes + body_bytes,
          .refusal = ""};
}

}  // namespace strata
