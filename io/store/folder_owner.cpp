#include "io/store/folder_owner.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <optional>

#include "io/store/lock_holder.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

constexpr std::size_t line_bytes_max = 4096, line_length_max = 120;

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
std::string own_line() {
  return fmt::format("process {} on host {} since {}\n", ::getpid(), host_name(), time_now());
}

struct OwnerLine {
  std::string text;
  long process = 0;
};

// Another user's file, perhaps: made safe for a terminal.
std::optional<OwnerLine> parse_line(const std::string& text) {
  OwnerLine line;
  if (std::sscanf(text.c_str(), "process %ld on host ", &line.process) != 1) return std::nullopt;
  line.text = text.substr(0, std::min(text.find('\n'), line_length_max));
  std::ranges::replace_if(
      line.text, [](char c) { return c < ' ' || c > '~'; }, '?');
  return line;
}

std::optional<OwnerLine> read_line(const FileSystem& files, const std::string& path) {
  try {
    const auto bytes = files.read_file(path, line_bytes_max);
    return parse_line({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  } catch (const Error&) {
    return std::nullopt;  // it has the lock and has not written yet
  }
}

// Of files on the host's disks the kernel knows who has the lock.
LockHolder holder_of(const FileSystem& files, const std::string& path) {
  return &files == &posix_file_system() ? lock_holder(path) : LockHolder();
}

// A line that a killed run left names another process than the one that has the lock.
std::string describe(const std::optional<OwnerLine>& line, const LockHolder& holder) {
  const bool is_known = holder.holder == Holder::somebody && holder.process > 0;
  if (line && (!is_known || line->process == holder.process)) return line->text;
  return is_known ? fmt::format("process {} on this host", holder.process)
                  : "a process that cannot be told";
}

// On a drive that several users share, the line of another user's dead run may be in the way: the
// lock tells of us nevertheless.
void leave_line(FileSystem& files, const std::string& path) {
  const std::string line = own_line();
  try {
    files.write_file(path, std::as_bytes(std::span(line)));
  } catch (const SystemError& error) {
    if (error.error_number() != EACCES && error.error_number() != EPERM) throw;
  }
}

void try_to_remove(FileSystem& files, const std::string& path) noexcept {
  try {
    files.remove(path);
  } catch (const std::exception&) {
    // The next owner writes over it.
  }
}

std::string path_in(const std::string& directory, const std::string& name) {
  return directory + "/" + name;
}

}  // namespace

FolderOwner::FolderOwner(FileSystem& files, const std::string& directory, const FolderUse& use)
    : files_(files),
      lock_path_(path_in(directory, use.lock_name)),
      line_path_(path_in(directory, use.line_name)),
      lock_(files.try_lock(lock_path_)) {
  if (lock_ == nullptr)
    throw ConfigError(fmt::format(
        "{} is in use by another run ({}): {}", directory,
        describe(read_line(files, line_path_), holder_of(files, lock_path_)), use.advice));
  leave_line(files_, line_path_);
}

// The line goes before the lock does: nobody is to be told of an owner that has gone. Who waits
// for the file that is removed sees that it is no longer the folder's, and makes a new one.
FolderOwner::~FolderOwner() {
  try_to_remove(files_, line_path_);
  try_to_remove(files_, lock_path_);
}

std::string folder_user(FileSystem& files, const std::string& directory, const FolderUse& use) {
  const std::string lock_path = path_in(directory, use.lock_name);
  const LockHolder holder = holder_of(files, lock_path);
  if (holder.holder == Holder::nobody || !files.exists(lock_path)) return "";
  const auto line = read_line(files, path_in(directory, use.line_name));
  if (holder.holder == Holder::unknown && !line) return "";
  return describe(line, holder);
}

}  // namespace strata
