#pragma once
// A GroupTimer calls a function later, once, unless it was cancelled or set anew before: also when
// its time had come by then and only the call had not.
//
// Thread contract: the thread of its io_context. Alive until the io_context ran out, or kept alive
// by the function.

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>

namespace strata {

class GroupTimer {
 public:
  explicit GroupTimer(const boost::asio::steady_timer::executor_type& executor)
      : timer_(executor) {}

  void set(double delay_s, std::function<void()> then) {
    cancel();
    timer_.expires_after(std::chrono::microseconds(static_cast<std::int64_t>(delay_s * 1e6)));
    timer_.async_wait([this, number = number_, then = std::move(then)](const auto& error) {
      if (!error && number == number_) then();
    });
  }
  void cancel() {
    ++number_;
    timer_.cancel();
  }

 private:
  boost::asio::steady_timer timer_;
  std::uint64_t number_ = 0;
};

}  // namespace strata
