#include "cli/stop_signal.hpp"

#include <signal.h>
#include <unistd.h>

#include <string_view>

namespace strata {
namespace {

std::atomic<bool> stop_requested{false};
std::atomic<int> stop_number{0};

extern "C" void on_stop(int number) {
  stop_requested = true;
  stop_number = number;
  ::signal(number, SIG_DFL);
  constexpr std::string_view text =
      "\nstopping after this step; a second signal ends the run at once\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace

StopSignal::StopSignal() {
  stop_requested = false;
  stop_number = 0;
  ::signal(SIGINT, on_stop);
  ::signal(SIGTERM, on_stop);
  ::signal(SIGHUP, on_stop);
}

StopSignal::~StopSignal() {
  ::signal(SIGINT, SIG_DFL);
  ::signal(SIGTERM, SIG_DFL);
  ::signal(SIGHUP, SIG_DFL);
}

const std::atomic<bool>* StopSignal::requested() const { return &stop_requested; }
int StopSignal::number() const { return stop_number; }

}  // namespace strata
