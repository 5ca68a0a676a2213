#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <optional>
#include <utility>

#include "display.hpp"
#include "io/store/lock_holder.hpp"
#include "strata/checkpoint/state_checkpoint.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

constexpr std::size_t owner_bytes_max = 4096;

std::string lock_path(const std::string& directory) {
  return fmt::format("{}/.strata-lock", directory);
}
std::string owner_path(const std::string& directory) {
  return fmt::format("{}/.strata-owner", directory);
}

std::string host_name() {
  std::array<char, 256> name = {};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

std::string time_now() {
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(now));
}

// The line that an owner leaves for those who come after it.
std::string owner_line() {
  return fmt::format("process {} on host {} since {}\n", ::getpid(), host_name(), time_now());
}

struct OwnerLine {
  std::string text;
  long process = 0;
};

std::optional<OwnerLine> parse_owner_line(std::string text) {
  OwnerLine line;
  if (std::sscanf(text.c_str(), "process %ld on host ", &line.process) != 1) return std::nullopt;
  line.text = text.substr(0, text.find('\n'));
  // Another user's file, perhaps: safe for a terminal, without the quotes.
  line.text = quote_name(line.text);
  line.text = line.text.substr(1, line.text.size() - 2);
  return line;
}

std::optional<OwnerLine> read_owner_line(const FileSystem& files, const std::string& path) {
  try {
    const auto bytes = files.read_file(path, owner_bytes_max);
    return parse_owner_line({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  } catch (const Error&) {
    return std::nullopt;  // it has the lock and has not written yet
  }
}

// Of files on the host's disks the kernel knows who has the lock.
LockHolder holder_of(const FileSystem& files, const std::string& path) {
  return &files == &posix_file_system() ? lock_holder(path) : LockHolder();
}

// A line that a killed run left names another process than the one that has the lock.
std::string describe_owner(const FileSystem& files, const std::string& directory) {
  const auto line = read_owner_line(files, owner_path(directory));
  const LockHolder holder = holder_of(files, lock_path(directory));
  const bool is_known = holder.holder == Holder::somebody && holder.process > 0;
  if (line && (!is_known || line->process == holder.process)) return line->text;
  return is_known ? fmt::format("process {} on this host", holder.process)
                  : "a process that cannot be told";
}

[[noreturn]] void refuse(const FileSystem& files, const std::string& directory) {
  throw ConfigError(fmt::format(
      "{} is in use by another run ({}): wait for its end or stop it, or name another output_dir",
      directory, describe_owner(files, directory)));
}

class LockedOutput final : public OutputOwner {
 public:
  LockedOutput(FileSystem& files, const std::string& directory, std::unique_ptr<FileLock> lock)
      : files_(files), owner_path_(owner_path(directory)), lock_(std::move(lock)) {
    const std::string line = owner_line();
    files_.write_file(owner_path_, std::as_bytes(std::span(line)));
  }
  // The line goes before the lock does: nobody is to be told of an owner that has gone.
  ~LockedOutput() override {
    try {
      files_.remove(owner_path_);
    } catch (const std::exception&) {
      // The next owner writes over it.
    }
  }

 private:
  FileSystem& files_;
  const std::string owner_path_;
  const std::unique_ptr<FileLock> lock_;
};

}  // namespace

std::unique_ptr<OutputOwner> OutputOwner::take(FileSystem& files, const std::string& directory) {
  auto lock = files.try_lock(lock_path(directory));
  if (lock == nullptr) refuse(files, directory);
  return std::make_unique<LockedOutput>(files, directory, std::move(lock));
}

}  // namespace strata
