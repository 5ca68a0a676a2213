#include "simt/fiber.hpp"

#include <cstdint>

// There in builds with the sanitizer only, elsewhere null.
extern "C" {
__attribute__((weak)) void __sanitizer_start_switch_fiber(void** fake_stack, const void* bottom,
                                                          std::size_t size);
__attribute__((weak)) void __sanitizer_finish_switch_fiber(void* fake_stack, const void** bottom,
                                                           std::size_t* size);
__attribute__((weak)) void* __tsan_get_current_fiber();
__attribute__((weak)) void* __tsan_create_fiber(unsigned flags);
__attribute__((weak)) void __tsan_destroy_fiber(void* fiber);
__attribute__((weak)) void __tsan_switch_to_fiber(void* fiber, unsigned flags);
}

namespace strata::simt {
namespace {

void start_switch(void** fake_stack, const void* bottom, std::size_t size) {
  if (__sanitizer_start_switch_fiber != nullptr)
    __sanitizer_start_switch_fiber(fake_stack, bottom, size);
}
void finish_switch(void* fake_stack, const void** bottom, std::size_t* size) {
  if (__sanitizer_finish_switch_fiber != nullptr)
    __sanitizer_finish_switch_fiber(fake_stack, bottom, size);
}
void tsan_switch(void* fiber) {
  if (__tsan_switch_to_fiber != nullptr) __tsan_switch_to_fiber(fiber, 0);
}

// Sanitizers know switches of contexts, and take jumps to other stacks for errors.
bool is_sanitized() {
  return __sanitizer_start_switch_fiber != nullptr || __tsan_switch_to_fiber != nullptr;
}

}  // namespace

Fiber::Fiber() : stack_(new std::byte[stack_bytes]) {
  if (__tsan_create_fiber != nullptr) tsan_inside_ = __tsan_create_fiber(0);
}

Fiber::~Fiber() {
  if (__tsan_destroy_fiber != nullptr) __tsan_destroy_fiber(tsan_inside_);
}

void Fiber::prepare(std::function<void()> body) {
  body_ = std::move(body);
  if (!is_idle_) make_context();
}

void Fiber::make_context() {
  fake_inside_ = nullptr;
  is_entered_ = false;
  ::getcontext(&inside_);
  inside_.uc_stack.ss_sp = stack_.get();
  inside_.uc_stack.ss_size = stack_bytes;
  inside_.uc_link = nullptr;
  const auto self = reinterpret_cast<std::uintptr_t>(this);
  ::makecontext(&inside_, reinterpret_cast<void (*)()>(&Fiber::enter), 2,
                static_cast<unsigned>(self), static_cast<unsigned>(self >> 32));
}

void Fiber::enter(unsigned low, unsigned high) {
  reinterpret_cast<Fiber*>(std::uintptr_t{high} << 32 | low)->run();
}

void Fiber::run() {
  finish_switch(nullptr, &outside_bottom_, &outside_size_);
  for (;;) {
    is_idle_ = false;
    body_();
    is_idle_ = true;
    pause();
  }
}

void Fiber::resume() {
  if (__tsan_get_current_fiber != nullptr) tsan_outside_ = __tsan_get_current_fiber();
  start_switch(&fake_outside_, stack_.get(), stack_bytes);
  tsan_switch(tsan_inside_);
  switch_in();
  finish_switch(fake_outside_, nullptr, nullptr);
}

void Fiber::pause() {
  start_switch(&fake_inside_, outside_bottom_, outside_size_);
  tsan_switch(tsan_outside_);
  switch_out();
  finish_switch(fake_inside_, &outside_bottom_, &outside_size_);
}

void Fiber::switch_in() {
  if (is_sanitized()) {
    ::swapcontext(&outside_, &inside_);
  } else if (_setjmp(jump_outside_) == 0) {
    if (is_entered_) _longjmp(jump_inside_, 1);
    is_entered_ = true;
    ::setcontext(&inside_);
  }
}

void Fiber::switch_out() {
  if (is_sanitized()) {
    ::swapcontext(&inside_, &outside_);
  } else if (_setjmp(jump_inside_) == 0) {
    _longjmp(jump_outside_, 1);
  }
}

}  // namespace strata::simt
