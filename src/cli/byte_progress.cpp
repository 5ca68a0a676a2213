#include "cli/byte_progress.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "strata/core/clock.hpp"
#include "strata/core/digits.hpp"
#include "strata/plan/prediction.hpp"

namespace strata {
namespace {

constexpr double line_every_s = 10;  // where nobody watches

std::string in_bytes(std::uint64_t bytes) { return scaled(static_cast<double>(bytes), "B"); }

}  // namespace

ByteProgress::ByteProgress(const std::string& doing, std::string what, std::FILE* stream)
    : doing_(doing + " " + what), what_(std::move(what)), start_ns_(now_ns()) {
  if (stream != nullptr)
    line_ = std::make_unique<ProgressLine>(stream, progress_shape(stream), terminal_style(stream),
                                           line_every_s);
}

ByteWatch ByteProgress::watch() {
  return [this](std::uint64_t done, std::uint64_t total) {
    done_ = done;
    if (line_ == nullptr || total == 0) return;
    line_->show(fmt::format("{}: {} of {}, {}", doing_, in_bytes(done), in_bytes(total),
                            scaled(bytes_per_s(), "B/s")),
                static_cast<double>(done) / static_cast<double>(total));
  };
}

std::string ByteProgress::finish() {
  line_.reset();
  return fmt::format("{} of {} in {}, {}", in_bytes(done_), what_,
                     format_seconds(seconds(now_ns() - start_ns_)), scaled(bytes_per_s(), "B/s"));
}

double ByteProgress::bytes_per_s() const {
  return static_cast<double>(done_) / std::max(1e-9, seconds(now_ns() - start_ns_));
}

}  // namespace strata
