#include "cli/stop_signal.hpp"

#include <signal.h>
#include <unistd.h>

#include <cstring>

#include "strata/core/clock.hpp"

namespace strata {
namespace {

std::atomic<bool> stop_requested{false}, save_wanted{false};
std::atomic<int> stop_number{0};
std::atomic<std::int64_t> stop_ns{0};
std::atomic<const char*> stop_notice{""};

extern "C" void on_stop(int number) {
  if (!stop_requested.exchange(true)) stop_ns = now_ns();
  stop_number = number;
  ::signal(number, SIG_DFL);
  const char* text = stop_notice;
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text, std::strlen(text));
}

extern "C" void on_save(int) { save_wanted = true; }

}  // namespace

StopSignal::StopSignal(const char* notice) {
  stop_notice = notice;
  stop_requested = false;
  stop_number = 0;
  ::signal(SIGINT, on_stop);
  ::signal(SIGTERM, on_stop);
  ::signal(SIGHUP, on_stop);
  save_wanted = false;
  ::signal(SIGUSR1, on_save);
}

StopSignal::~StopSignal() {
  ::signal(SIGINT, SIG_DFL);
  ::signal(SIGTERM, SIG_DFL);
  ::signal(SIGHUP, SIG_DFL);
  ::signal(SIGUSR1, SIG_DFL);
}

const std::atomic<bool>* StopSignal::requested() const { return &stop_requested; }
std::atomic<bool>* StopSignal::save_requested() const { return &save_wanted; }
int StopSignal::number() const { return stop_number; }
std::int64_t StopSignal::received_ns() const { return stop_ns; }

}  // namespace strata
