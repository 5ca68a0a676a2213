#pragma once
// Errors. The world's failures (files, config, devices, limits) are exceptions that carry facts:
// what, where, how much was wanted, how much there was, what to do. Broken invariants of ours stop
// the program, in every build. Thread contract: all functions may be called from any thread.

#include <cstdint>
#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>

namespace strata {

// Base of every failure that Strata reports to its user. what() is one complete message.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A config file, command line or model folder says something that cannot be done. what() names the
// key or file.
class ConfigError : public Error {
 public:
  using Error::Error;
};

// A file from outside breaks its format's rules. what() names the file and the rule.
class FormatError : public Error {
 public:
  using Error::Error;
};

// Somebody asked a measurement or a run to end early (a signal), and it did, its traces removed.
class Interrupted : public Error {
 public:
  using Error::Error;
};

// A tier, device or budget is too small.
class OutOfMemory : public Error {
 public:
  OutOfMemory(std::string_view where, std::uint64_t wanted_bytes, std::uint64_t free_bytes,
              std::string_view advice = {});
  const std::string& where() const { return where_; }
  std::uint64_t wanted_bytes() const { return wanted_bytes_; }
  std::uint64_t free_bytes() const { return free_bytes_; }

 private:
  std::string where_;
  std::uint64_t wanted_bytes_;
  std::uint64_t free_bytes_;
};

// A system call failed. The message carries the action, the path and the errno text.
class SystemError : public Error {
 public:
  SystemError(std::string_view action, std::string_view subject, int error_number);
  // `message`: complete, errno text and all.
  SystemError(const std::string& message, int error_number)
      : Error(message), error_number_(error_number) {}
  int error_number() const { return error_number_; }

 private:
  int error_number_;
};

// Returns `result` if it is not negative; otherwise throws SystemError with errno.
// check(::fsync(fd), "flush", path);
long check(long result, std::string_view action, std::string_view subject);

// Stops the program when an invariant of ours is broken; never for the world's failures.
inline void ensure(bool holds, std::source_location where = std::source_location::current());
[[noreturn]] void invariant_broken(const std::source_location& where);

inline void ensure(bool holds, std::source_location where) {
  if (!holds) [[unlikely]]
    invariant_broken(where);
}

}  // namespace strata
