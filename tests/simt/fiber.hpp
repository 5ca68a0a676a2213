#pragma once
// A fiber is a function with a stack of its own that can stop in the middle. One thread runs all
// fibers; control passes between it and one fiber at a time.

#include <setjmp.h>
#include <ucontext.h>

#include <cstddef>
#include <functional>
#include <memory>

namespace strata::simt {

class Fiber {
 public:
  static constexpr std::size_t stack_bytes = 128 * 1024;

  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // The next resume() enters `body`, which must not throw. A body under way, that of a launch that
  // ended with a fault, is dropped and its stack not unwound.
  void prepare(std::function<void()> body);
  // Runs the fiber until it pauses or its body ends.
  void resume();
  // Called by the running fiber: back to whoever resumed it.
  void pause();

 private:
  static void enter(unsigned low, unsigned high);
  void make_context();
  void run();
  void switch_in();
  void switch_out();

  std::unique_ptr<std::byte[]> stack_;
  ucontext_t inside_{}, outside_{};
  // Where each side goes on: jumps, as a switch of contexts costs two system calls.
  jmp_buf jump_inside_{}, jump_outside_{};
  std::function<void()> body_;
  bool is_idle_ = false;     // between two bodies
  bool is_entered_ = false;  // its stack is in use
  // What sanitizers need to follow a switch of stacks.
  void* fake_inside_ = nullptr;
  void* fake_outside_ = nullptr;
  const void* outside_bottom_ = nullptr;
  std::size_t outside_size_ = 0;
  void* tsan_inside_ = nullptr;
  void* tsan_outside_ = nullptr;
};

}  // namespace strata::simt
