#include "io/uring/event_descriptor.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "strata/core/error.hpp"

namespace strata {

EventDescriptor::EventDescriptor() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  check(descriptor_, "make", "an eventfd");
}

EventDescriptor::~EventDescriptor() { ::close(descriptor_); }

void EventDescriptor::signal() const {
  const std::uint64_t one = 1;
  while (::write(descriptor_, &one, sizeof(one)) < 0 && errno == EINTR) {
  }
}

void EventDescriptor::clear() const {
  std::uint64_t count = 0;
  while (::read(descriptor_, &count, sizeof(count)) < 0 && errno == EINTR) {
  }
}

void EventDescriptor::wait_ms(int milliseconds) const {
  pollfd entry = {.fd = descriptor_, .events = POLLIN, .revents = 0};
  ::poll(&entry, 1, milliseconds);
}

}  // namespace strata
