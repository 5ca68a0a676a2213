#include "group_peer.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace strata {
namespace {

constexpr std::size_t host_bytes_max = 255;

bool is_host_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '-' || c == '_' || c == ':';
}

std::string this_host() {
  std::array<char, host_bytes_max + 1> name = {};
  if (::gethostname(name.data(), host_bytes_max) != 0) return "unknown";
  std::string host(name.data());
  std::ranges::replace_if(
      host, [](char c) { return !is_host_letter(c); }, '_');
  return host.empty() ? "unknown" : host;
}

}  // namespace

GroupPeer this_group_peer(int process) {
  return {process, static_cast<std::uint32_t>(::getpid()), this_host()};
}

std::string describe(const GroupPeer& peer) {
  return fmt::format("process {} (pid {} on {})", peer.process, peer.pid, peer.host);
}

std::string encode_group_peer(const GroupPeer& peer) {
  return fmt::format("{} {}", peer.pid, peer.host);
}

std::optional<GroupPeer> parse_group_peer(int process, std::string_view body) {
  GroupPeer peer{process, 0, ""};
  const char* end = body.data() + body.size();
  const auto [stop, error] = std::from_chars(body.data(), end, peer.pid);
  if (error != std::errc() || stop == end || *stop != ' ') return std::nullopt;
  peer.host.assign(stop + 1, end);
  if (peer.host.empty() || peer.host.size() > host_bytes_max) return std::nullopt;
  if (!std::ranges::all_of(peer.host, is_host_letter)) return std::nullopt;
  return peer;
}

std::uint64_t group_token(const Launch& launch) {
  const std::string text = fmt::format("{} processes of {}", launch.num_processes, launch.job);
  return XXH3_64bits(text.data(), text.size());
}

}  // namespace strata
