#include "cli/bench_watch.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "cli/progress_line.hpp"
#include "cli/text_file.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"

namespace strata {

int measure_watched(const StopSignal& signal, const std::string& after,
                    const std::function<void(const BenchWatch&)>& measure) {
  try {
    ProgressLine line(stderr, progress_shape(stderr), terminal_style(stderr));
    measure({.progress = [&line](const std::string& what, double done) { line.show(what, done); },
             .stop = signal.requested()});
  } catch (const Interrupted& interrupted) {
    fmt::print(stderr, "strata: {}{}\n", interrupted.what(), after);
    return 128 + signal.number();
  }
  return 0;
}

void check_target(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty() || std::filesystem::is_directory(folder)) return;
  throw ConfigError(fmt::format("{}: {} is no folder", path, folder.string()));
}

void write_asked_file(const std::string& path, const std::string& text) {
  if (path.empty()) return;
  replace_text_file(path, text);
  fmt::print("\nwrote {}\n", path);
}

std::uint64_t option_bytes(const std::string& option, const std::string& text) {
  try {
    return parse_bytes(text);
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format("{}: {}", option, error.what()));
  }
}

}  // namespace strata
