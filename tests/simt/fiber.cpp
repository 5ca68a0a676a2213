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

}  // namespace

Fiber::Fiber() : stack_(new std::byte[stack_bytes]) {
  if (__tsan_create_fiber != nullptr) tsan_inside_ = __tsan_create_fiber(0);
}

Fiber::~Fiber() {
  if (__tsan_destroy_fiber != nullptr) __tsan_destroy_fiber(tsan_inside_);
}

void Fiber::prepare(std::function<void()> body) {
  body_ = std::move(body);
  fake_inside_ = nullptr;
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
  body_();
  for (;;) pause();
}

void Fiber::resume() {
  if (__tsan_get_current_fiber != nullptr) tsan_outside_ = __tsan_get_current_fiber();
  start_switch(&fake_outside_, stack_.get(), stack_bytes);
  tsan_switch(tsan_inside_);
  ::swapcontext(&outside_, &inside_);
  finish_switch(fake_outside_, nullptr, nullptr);
}

void Fiber::pause() {
  start_switch(&fake_inside_, outside_bottom_, outside_size_);
  tsan_switch(tsan_outside_);
  ::swapcontext(&inside_, &outside_);
  finish_switch(fake_inside_, &outside_bottom_, &outside_size_);
}

}  // namespace strata::simt
