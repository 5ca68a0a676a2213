#pragma once
// TCP on loopback for those who do not keep to the group's protocol. All waits are bounded.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "src/comm/process/group_message.hpp"
#include "src/comm/process/group_peer.hpp"
#include "strata/core/error.hpp"

namespace strata::testing {

class RawSocket {
 public:
  RawSocket()
      : fd_(static_cast<int>(check(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
                                   "make a socket", "for a test"))) {
    constexpr timeval wait_max{.tv_sec = 60, .tv_usec = 0};
    const int on = 1;
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &wait_max, sizeof wait_max);
    ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &wait_max, sizeof wait_max);
    ::setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  }
  RawSocket(RawSocket&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), received_(std::move(other.received_)) {}
  RawSocket& operator=(RawSocket&&) = delete;
  ~RawSocket() { close(); }

  static RawSocket connected(std::uint16_t port) {
    RawSocket made;
    if (!made.connects(port)) throw Error("nobody listens");
    return made;
  }
  // A port that nobody listens on, kept from others; whoever sets SO_REUSEADDR may bind it.
  static RawSocket bound(std::uint16_t port = 0) {
    RawSocket made;
    const sockaddr_in address = loopback(port);
    check(::bind(made.fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address), "bind",
          "loopback");
    return made;
  }
  static RawSocket listening(std::uint16_t port = 0) {
    RawSocket made = bound(port);
    check(::listen(made.fd_, 16), "listen", "loopback");
    return made;
  }

  bool connects(std::uint16_t port) {
    const sockaddr_in address = loopback(port);
    return ::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  RawSocket accepted() const {
    const auto fd =
        again_after_stops([&] { return ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC); });
    return RawSocket(static_cast<int>(check(fd, "accept", "loopback")));
  }
  std::uint16_t port() const {
    sockaddr_in address = {};
    socklen_t size = sizeof address;
    ::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
    return ntohs(address.sin_port);
  }

  void send(const std::string& bytes) const {
    again_after_stops([&] { return ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL); });
  }
  void say(const GroupMessage& message) const { send(encode_group_message(message)); }

  // The next message that is no heartbeat; nothing when the connection ends first.
  std::optional<GroupMessage> hear() {
    while (true) {
      GroupMessageParse parse = parse_group_message(received_, group_text_bytes_max);
      if (!parse.message && !receive()) return std::nullopt;
      if (!parse.message) continue;
      received_.erase(0, parse.used_bytes);
      if (parse.message->kind != GroupMessageKind::alive) return parse.message;
    }
  }
  // Whether the other end closes, whatever it still says. Then this end is closed too.
  bool is_closed() {
    while (receive()) {
    }
    const bool is_over = errno != EAGAIN && errno != EWOULDBLOCK;
    close();
    return is_over;
  }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  explicit RawSocket(int fd) : fd_(fd) {}

  // Calls with a time limit end with EINTR when the process was stopped and goes on.
  template <typename Call>
  static ssize_t again_after_stops(const Call& call) {
    ssize_t result = call();
    for (; result < 0 && errno == EINTR; result = call()) {
    }
    return result;
  }

  static sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }
  bool receive() {
    if (fd_ < 0) return false;
    std::array<char, 4096> part = {};
    errno = 0;
    const ssize_t got = again_after_stops([&] { return ::recv(fd_, part.data(), part.size(), 0); });
    if (got > 0) received_.append(part.data(), static_cast<std::size_t>(got));
    return got > 0;
  }

  int fd_ = -1;
  std::string received_;
};

// What process `process` of a job without a name says first.
inline GroupMessage ghost_hello(std::uint32_t process, int num_processes) {
  const Launch launch{.num_processes = num_processes, .num_local_processes = num_processes};
  return {.kind = GroupMessageKind::hello,
          .process = process,
          .number = group_token(launch),
          .body = "77 ghost"};
}

}  // namespace strata::testing
