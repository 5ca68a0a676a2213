#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>

#include "strata/core/clock.hpp"
#include "strata/core/error.hpp"
#include "strata/telemetry/trace.hpp"
#include "telemetry/trace_time.hpp"

namespace strata {
namespace {

constexpr std::size_t buffered_max = 1 << 20;
constexpr std::string_view opening = "[", closing = "\n]\n";

// Text from outside may be no UTF-8.
std::string json_text(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string microseconds(std::int64_t ns) {
  return fmt::format("{:.3f}", static_cast<double>(ns) / 1e3);
}

std::int64_t end_ns(const TraceFile::Span& span) {
  return std::max(nanoseconds(span.start_s), nanoseconds(span.start_s + span.seconds));
}

// Beyond it nanoseconds fit no 64 bits.
bool is_time(double seconds) { return std::isfinite(seconds) && std::fabs(seconds) < 1e9; }
bool has_times(const TraceFile::Span& span) {
  return is_time(span.start_s) && is_time(span.start_s + span.seconds);
}

bool is_number(const std::string& text) {
  constexpr std::size_t digits_max = 15;  // exact in a double, which is what viewers read
  return !text.empty() && text.size() <= digits_max && (text == "0" || text[0] != '0') &&
         std::ranges::all_of(text, [](char c) { return '0' <= c && c <= '9'; });
}

std::string arguments_json(const TraceFile::Span& span) {
  std::string text;
  for (const auto& [key, value] : span.arguments)
    text += fmt::format("{}{}:{}", text.empty() ? "" : ",", json_text(key),
                        is_number(value) ? value : json_text(value));
  return text;
}

}  // namespace

struct TraceFile::Impl {
  explicit Impl(const std::filesystem::path& file) : path(file) {
    descriptor =
        static_cast<int>(check(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644),
                               "open trace file", path.string()));
    flush();
    if (error == 0) return;
    ::close(descriptor);
    throw SystemError("write trace file", path.string(), error);
  }
  ~Impl() {
    if (descriptor >= 0) ::close(descriptor);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void event(const std::string& json) {
    if (descriptor < 0 || error != 0) return;
    text += has_events ? ",\n" : "\n";
    text += json;
    has_events = true;
    if (text.size() >= buffered_max) flush();
  }
  void metadata(int process, int row, std::string_view what, const std::string& arguments) {
    event(fmt::format(R"({{"ph":"M","pid":{},"tid":{},"name":"{}","args":{{{}}}}})", process + 1,
                      row, what, arguments));
  }
  // The closing bracket of the flush before is overwritten.
  void flush() {
    if (descriptor < 0 || error != 0 || text.empty()) return;
    const std::size_t events = text.size();
    text += closing;
    error = write_at(end, text);
    text.clear();
    if (error != 0) return restore();
    end += static_cast<off_t>(events);
  }
  // On a full disk the bytes that the bracket had are still there.
  void restore() const {
    if (end > 0 && ::ftruncate(descriptor, end) == 0) write_at(end, closing);
  }
  int write_at(off_t offset, std::string_view rest) const {
    while (!rest.empty()) {
      const ssize_t written = ::pwrite(descriptor, rest.data(), rest.size(), offset);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return written < 0 ? errno : EIO;
      rest.remove_prefix(static_cast<std::size_t>(written));
      offset += written;
    }
    return 0;
  }
  void close() {
    if (descriptor < 0) return;
    flush();
    if (::close(descriptor) != 0 && error == 0) error = errno;
    descriptor = -1;
    if (error != 0) throw SystemError("write trace file", path.string(), error);
  }

  const std::filesystem::path path;
  int descriptor = -1;
  std::string text{opening};  // not in the file yet
  off_t end = 0;              // of the events in the file
  bool has_events = false;
  int error = 0;
  std::optional<std::int64_t> origin_ns;
  mutable std::mutex mutex;  // of all above
};

TraceFile::TraceFile(const std::filesystem::path& path) : impl_(std::make_unique<Impl>(path)) {}

TraceFile::~TraceFile() {
  try {
    close();
  } catch (const Error&) {  // Who wants to know calls close().
  }
}

void TraceFile::name_process(int process, const std::string& name) {
  const std::lock_guard lock(impl_->mutex);
  impl_->metadata(process, 0, "process_name", fmt::format(R"("name":{})", json_text(name)));
  impl_->metadata(process, 0, "process_sort_index", fmt::format(R"("sort_index":{})", process));
}

void TraceFile::name_row(int process, int row, const std::string& name, int sorts_as) {
  const std::lock_guard lock(impl_->mutex);
  impl_->metadata(process, row, "thread_name", fmt::format(R"("name":{})", json_text(name)));
  impl_->metadata(process, row, "thread_sort_index", fmt::format(R"("sort_index":{})", sorts_as));
}

void TraceFile::span(const Span& span) {
  if (!has_times(span)) return;
  const std::int64_t start = nanoseconds(span.start_s);
  const std::string json = fmt::format(
      R"({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"name":{},"cat":{},"args":{{{}}}}})",
      span.process + 1, span.row, microseconds(start), microseconds(end_ns(span) - start),
      json_text(span.name), json_text(span.category), arguments_json(span));
  const std::lock_guard lock(impl_->mutex);
  impl_->event(json);
}

void TraceFile::counter(int process, const std::string& name, const std::string& unit, double at_s,
                        double value) {
  if (!is_time(at_s) || !std::isfinite(value)) return;
  const std::lock_guard lock(impl_->mutex);
  impl_->event(fmt::format(R"({{"ph":"C","pid":{},"ts":{},"name":{},"args":{{{}:{}}}}})",
                           process + 1, microseconds(nanoseconds(at_s)), json_text(name),
                           json_text(unit), value));
}

// The arrow leaves within the last nanosecond: at its end a viewer has left the span.
void TraceFile::flow(std::uint64_t id, const Span& from, const Span& to) {
  if (!has_times(from) || !has_times(to)) return;
  const std::int64_t leaves = std::max(nanoseconds(from.start_s), end_ns(from) - 1);
  constexpr std::string_view names = R"("name":"first use","cat":"flow")";
  const std::lock_guard lock(impl_->mutex);
  impl_->event(fmt::format(R"({{"ph":"s","pid":{},"tid":{},"ts":{},"id":{},{}}})", from.process + 1,
                           from.row, microseconds(leaves), id, names));
  impl_->event(fmt::format(R"({{"ph":"f","bp":"e","pid":{},"tid":{},"ts":{},"id":{},{}}})",
                           to.process + 1, to.row, microseconds(nanoseconds(to.start_s)), id,
                           names));
}

std::int64_t TraceFile::origin_ns() {
  const std::lock_guard lock(impl_->mutex);
  if (!impl_->origin_ns) impl_->origin_ns = now_ns();
  return *impl_->origin_ns;
}

void TraceFile::flush() {
  const std::lock_guard lock(impl_->mutex);
  impl_->flush();
}

std::string TraceFile::failure() const {
  const std::lock_guard lock(impl_->mutex);
  if (impl_->error == 0) return "";
  return SystemError("write trace file", impl_->path.string(), impl_->error).what();
}

void TraceFile::close() {
  const std::lock_guard lock(impl_->mutex);
  impl_->close();
}

}  // namespace strata
