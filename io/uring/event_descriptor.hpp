#pragma once
// An EventDescriptor is an eventfd: a bell that a ring can listen to.
//
// Thread contract: signal() from any thread.

namespace strata {

class EventDescriptor {
 public:
  EventDescriptor();  // Throws SystemError.
  ~EventDescriptor();
  EventDescriptor(const EventDescriptor&) = delete;
  EventDescriptor& operator=(const EventDescriptor&) = delete;

  int get() const { return descriptor_; }
  void signal() const;
  // Forgets the signals so far.
  void clear() const;
  // Waits for a signal without a ring; not for long.
  void wait_ms(int milliseconds) const;

 private:
  const int descriptor_;
};

}  // namespace strata
