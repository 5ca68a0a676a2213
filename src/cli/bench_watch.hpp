#pragma once
// What the commands below `strata bench` share around their measurements.

#include <cstdint>
#include <functional>
#include <string>

#include "cli/stop_signal.hpp"
#include "strata/measure/bench_watch.hpp"

namespace strata {

// Measures with a line of progress on stderr. Returns the exit code: of a signal when one ended it,
// then `after` follows the message.
int measure_watched(const StopSignal& signal, const std::string& after,
                    const std::function<void(const BenchWatch&)>& measure);

// Throws ConfigError when the file's folder is missing: before a measurement, not after it.
void check_target(const std::string& path);
// Writes the file where a path is given, and says so.
void write_asked_file(const std::string& path, const std::string& text);
// The bytes that an option's text says. Throws ConfigError that names the option.
std::uint64_t option_bytes(const std::string& option, const std::string& text);

}  // namespace strata
