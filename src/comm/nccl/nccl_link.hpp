#pragma once
// An NcclLink is one rank's end of NCCL: it gives groups of calls, and sees to it that none waits
// for ever. A thread of its own asks whether the job has failed (whichever line or process it was),
// whether NCCL has, and whether a collective hangs; it alone takes the end down: by an abort, which
// ends what runs on the device, or, when the rank has left in peace, together with the others. NCCL
// may wait for other ranks of the host in both, so neither is done by a thread that others need.
// Between a failure and the abort is a moment for what all ranks have come to.
//
// Thread contract: open(), run() and leave() from the rank's thread; look_now() from any; close()
// when the rank calls no more.

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "comm/meeting.hpp"
#include "comm/nccl/nccl_api.hpp"
#include "comm/nccl/nccl_calls.hpp"
#include "comm/nccl/nccl_flights.hpp"
#include "strata/comm/communicator.hpp"

namespace strata {

struct NcclPatience {
  double timeout_s = 1800, watch_s = 0.02, soon_s = 0.25, inside_s = 2;
  NcclFlights::Clock clock = &now_ns;
};

class NcclLink : public std::enable_shared_from_this<NcclLink> {
 public:
  // `line` tells of the job's failures, and is told.
  NcclLink(NcclApi& api, std::shared_ptr<Communicator> line, Device& device,
           const NcclPatience& patience)
      : api_(api),
        line_(std::move(line)),
        device_(device),
        flights_(device, patience.clock),
        patience_(patience) {}

  // Joins the ranks that were told the same id; for the thread's device. Throws Error.
  void open(const NcclId& id);

  // Gives what add(calls) calls to the stream, as one. Returns when it is there. Throws Error when
  // the job has failed, or fails by it.
  template <typename Add>
  void run(const MetCall& call, Stream& stream, const Add& add) {
    settle(call, give(call, add));
    flights_.note(call, stream);
  }

  void look_now() noexcept;  // The job may have failed.
  void leave() noexcept;     // The rank calls no more, and nothing is under way.
  // Returns when NCCL has let go of the rank. What NCCL does not end is left behind.
  void close();

  // Whether what a stream is done with may not be what it should. Any thread.
  bool has_cut_short() const { return has_cut_short_; }
  [[noreturn]] void throw_failure(const MetCall& call) const;

 private:
  enum class Wish : std::uint8_t { go_on, leave };
  struct Given {
    NcclStatus status;
    std::string_view call;
  };

  template <typename Add>
  Given give(const MetCall& call, const Add& add) {
    const std::lock_guard lock(calls_);
    if (is_down_) throw_failure(call);
    NcclCalls calls(api_, comm_);
    add(calls);
    calls.end();
    return {calls.status(), calls.last_call()};
  }
  void settle(const MetCall& call, Given given);
  void await_down();
  Given ask_state();
  Given ask_state_again(const MetCall& call);
  void await_open();
  void fail(const std::string& text) noexcept;
  bool has_failed() const { return !line_->failure().empty(); }

  void start_watching();

  // Of the watching thread.
  void use_device();
  void watch();
  bool pause();  // false: the rank has left
  void look();
  void take_down();
  bool finalize();
  void await_abort() noexcept;
  void abort();

  // Constant after construction.
  NcclApi& api_;
  std::shared_ptr<Communicator> line_;
  Device& device_;  // which may go once the rank has left
  NcclFlights flights_;
  NcclPatience patience_;
  // Held by whoever is inside NCCL with comm_.
  std::mutex calls_;
  NcclCommHandle comm_ = nullptr;
  std::atomic<bool> is_down_ = false, has_cut_short_ = false;
  // Guarded by mutex_.
  std::mutex mutex_;
  std::condition_variable changed_;
  Wish wish_ = Wish::go_on;
  bool is_watching_ = false, is_woken_ = false, is_aborting_ = false, is_over_ = false;
  std::thread watcher_;
};

}  // namespace strata
