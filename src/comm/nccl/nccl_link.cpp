#include "comm/nccl/nccl_link.hpp"

#include <fmt/format.h>

#include <chrono>

#include "comm/nccl/nccl_failure.hpp"
#include "comm/patience.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

// Beyond what an abort takes where every rank of the host aborts.
constexpr auto abort_max = std::chrono::seconds(30);

}  // namespace

void NcclLink::open(const NcclId& id) {
  check(api_, api_.comm_init(comm_, line_->world(), id, line_->rank()), "ncclCommInitRankConfig");
  try {
    await_open();
    start_watching();
  } catch (const std::exception& error) {
    fail(error.what());  // First: the others must abort too for this one to end.
    is_down_ = has_cut_short_ = true;
    api_.comm_abort(comm_);
    throw;
  }
}

// Returns when the thread no longer needs the device itself.
void NcclLink::start_watching() {
  watcher_ = std::thread([self = shared_from_this()] {
    self->use_device();
    self->watch();
  });
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return is_watching_; });
}

// A thread that asks for events without a device of its own would open device 0.
void NcclLink::use_device() {
  try {
    device_.use_on_this_thread();
  } catch (const std::exception& error) {
    fail(error.what());
  }
  const std::lock_guard lock(mutex_);
  is_watching_ = true;
  changed_.notify_all();
}

void NcclLink::await_open() {
  Patience patience;
  while (true) {
    const Given state = ask_state();
    check(api_, state.status, state.call);
    if (state.status == NcclStatus::success) return;
    if (has_failed()) throw Error(line_->failure());
    if (patience.waited_s() > patience_.timeout_s)
      throw Error(fmt::format("NCCL did not join the {} ranks within {} s", line_->world(),
                              patience_.timeout_s));
    patience.pause();
  }
}

NcclLink::Given NcclLink::ask_state() {
  NcclStatus state = NcclStatus::success;
  const NcclStatus asked = api_.comm_state(comm_, state);
  return {is_error(asked) ? asked : state, "ncclCommGetAsyncError"};
}

// Until NCCL has put the group on the stream, nothing else may follow it there; and until it has,
// or is down and never will, the stream and the memory of the group must live, whatever has failed.
void NcclLink::settle(const MetCall& call, Given given) {
  const bool is_under_way = given.status == NcclStatus::in_progress;
  Patience patience;
  while (given.status == NcclStatus::in_progress) {
    patience.pause();
    given = ask_state_again(call);
    if (given.status == NcclStatus::in_progress && patience.waited_s() > patience_.timeout_s)
      fail(fmt::format("NCCL did not begin {} within {} s", describe(call), patience_.timeout_s));
  }
  if (!is_error(given.status)) return;
  fail(nccl_failure(api_, given.status, given.call));
  if (is_under_way) await_down();
  throw_failure(call);
}

NcclLink::Given NcclLink::ask_state_again(const MetCall& call) {
  const std::lock_guard lock(calls_);
  if (is_down_) throw_failure(call);
  return ask_state();
}

// Its watcher takes a link down that has failed.
void NcclLink::await_down() {
  for (Patience patience;; patience.pause())
    if (const std::lock_guard lock(calls_); is_down_) return;
}

void NcclLink::fail(const std::string& text) noexcept {
  line_->abort(fmt::format("rank {}: {}", line_->rank(), text));
  look_now();
}

void NcclLink::throw_failure(const MetCall& call) const {
  throw Error(fmt::format("{} on rank {} of {} failed: {}", collective_name(call.kind),
                          line_->rank(), line_->world(), line_->failure()));
}

void NcclLink::look_now() noexcept {
  const std::lock_guard lock(mutex_);
  is_woken_ = true;
  changed_.notify_all();
}

void NcclLink::leave() noexcept {
  flights_.end();
  const std::lock_guard lock(mutex_);
  wish_ = Wish::leave;
  changed_.notify_all();
}

void NcclLink::close() {
  leave();
  std::unique_lock lock(mutex_);
  if (!watcher_.joinable()) return;
  changed_.wait(lock, [&] { return is_over_ || is_aborting_; });
  const bool is_over = changed_.wait_for(lock, abort_max, [&] { return is_over_; });
  lock.unlock();
  if (is_over) return watcher_.join();
  watcher_.detach();  // It holds this link.
}

void NcclLink::watch() {
  while (!has_failed() && pause()) look();
  take_down();
  const std::lock_guard lock(mutex_);
  is_over_ = true;
  changed_.notify_all();
}

bool NcclLink::pause() {
  std::unique_lock lock(mutex_);
  const auto is_wanted = [&] { return is_woken_ || wish_ == Wish::leave; };
  changed_.wait_for(lock, std::chrono::duration<double>(patience_.watch_s), is_wanted);
  is_woken_ = false;
  return wish_ == Wish::go_on;
}

// Whoever is inside NCCL will be told the same.
void NcclLink::look() {
  try {
    if (const std::unique_lock lock(calls_, std::try_to_lock); lock.owns_lock()) {
      const Given state = ask_state();
      if (is_error(state.status)) return fail(nccl_failure(api_, state.status, state.call));
    }
    const auto late = flights_.overdue(patience_.timeout_s);
    if (late && !has_failed())
      fail(
          fmt::format("{} did not end within {} s: another rank's device, or the link to it, does "
                      "not answer",
                      describe(*late), patience_.timeout_s));
  } catch (const std::exception& error) {
    fail(error.what());
  }
}

void NcclLink::take_down() {
  if (!has_failed() && finalize()) return;
  {
    const std::lock_guard lock(mutex_);
    is_aborting_ = true;
    changed_.notify_all();
  }
  await_abort();
  abort();
}

// Another rank's abort may come before this one's, and ends what runs here: so what a stream is
// done with is no longer believed from half of the time on.
void NcclLink::await_abort() noexcept {
  const std::chrono::duration<double> half(patience_.soon_s / 2);
  std::this_thread::sleep_for(half);
  has_cut_short_ = true;
  std::this_thread::sleep_for(half);
}

// Whoever does not leave NCCL hangs there: for want of room to launch, which an abort makes.
void NcclLink::abort() {
  std::unique_lock lock(calls_, std::try_to_lock);
  for (Patience patience; !lock.owns_lock() && patience.waited_s() < patience_.inside_s;) {
    patience.pause();
    static_cast<void>(lock.try_lock());
  }
  is_down_ = has_cut_short_ = true;
  api_.comm_abort(comm_);
}

// With the others, who may still be at work: for as long as a collective would wait for them.
bool NcclLink::finalize() {
  const std::lock_guard lock(calls_);
  Patience patience;
  Given given{api_.comm_finalize(comm_), "ncclCommFinalize"};
  while (given.status == NcclStatus::in_progress) {
    if (has_failed() || patience.waited_s() > patience_.timeout_s) return false;
    patience.pause();
    given = ask_state();
  }
  if (is_error(given.status)) {  // The others would wait for this rank, whose abort for them.
    fail(nccl_failure(api_, given.status, given.call));
    return false;
  }
  is_down_ = true;
  api_.comm_destroy(comm_);
  return true;
}

}  // namespace strata
