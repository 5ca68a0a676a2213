#include "cli/byte_progress.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/progress_line.hpp"
#include "strata/core/clock.hpp"
#include "strata/core/digits.hpp"
#include "strata/plan/prediction.hpp"

namespace strata {
namespace {

constexpr double line_every_s = 10;    // where nobody watches
constexpr double shown_after_s = 0.5;  // what is done by then needs no bar

std::string in_bytes(std::uint64_t bytes) { return scaled(static_cast<double>(bytes), "B"); }

}  // namespace

ByteProgress::ByteProgress(const std::string& doing, std::string what, std::FILE* stream)
    : doing_(doing + " " + what), what_(std::move(what)), stream_(stream), start_ns_(now_ns()) {}

ByteProgress::~ByteProgress() = default;

ByteWatch ByteProgress::watch() {
  return [this](std::uint64_t done, std::uint64_t total) {
    done_ = done;
    if (done == 0) begin();
    if (line_ == nullptr || total == 0 || elapsed_s() < shown_after_s) return;
    line_->show(fmt::format("{}: {}, {}", doing_, in_bytes(done), scaled(bytes_per_s(), "B/s")),
                static_cast<double>(done) / static_cast<double>(total));
  };
}

// What was made ready before is not counted.
void ByteProgress::begin() {
  start_ns_ = now_ns();
  if (stream_ == nullptr) return;
  line_ = std::make_unique<ProgressLine>(stream_, progress_shape(stream_), terminal_style(stream_),
                                         line_every_s);
}

std::string ByteProgress::finish() {
  line_.reset();
  return fmt::format("{} of {} in {}, {}", in_bytes(done_), what_, format_seconds(elapsed_s()),
                     scaled(bytes_per_s(), "B/s"));
}

double ByteProgress::elapsed_s() const { return seconds(now_ns() - start_ns_); }

double ByteProgress::bytes_per_s() const {
  return static_cast<double>(done_) / std::max(1e-9, elapsed_s());
}

}  // namespace strata
