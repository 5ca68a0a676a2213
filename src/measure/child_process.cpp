#include "child_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "strata/core/error.hpp"

namespace strata {
namespace {

constexpr int tick_ms = 100;

class Pipe {
 public:
  Pipe() { check(::pipe2(ends_.data(), O_CLOEXEC), "make", "a pipe"); }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int reading() const { return ends_[0]; }
  int writing() const { return ends_[1]; }
  void close_writing() { close_end(1); }

 private:
  void close_end(std::size_t end) {
    if (ends_[end] >= 0) ::close(std::exchange(ends_[end], -1));
  }
  std::array<int, 2> ends_ = {-1, -1};
};

class SpawnActions {
 public:
  explicit SpawnActions(int output) {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawn_file_actions_adddup2(&actions_, output, STDOUT_FILENO);
    ::posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_addopen(&actions_, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  }
  ~SpawnActions() { ::posix_spawn_file_actions_destroy(&actions_); }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;

  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_ = {};
};

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

std::string name_of(std::string_view entry) {
  return std::string(entry.substr(0, entry.find('=') + 1));
}

std::vector<std::string> environment_with(const std::vector<std::string>& added) {
  std::vector<std::string> all = added;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    bool replaced = false;
    for (const std::string& one : added) replaced |= name_of(one) == name_of(*entry);
    if (!replaced) all.emplace_back(*entry);
  }
  return all;
}

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

// False at the end of what there is to read.
bool read_some(int descriptor, std::string& text) {
  pollfd ready = {.fd = descriptor, .events = POLLIN, .revents = 0};
  if (::poll(&ready, 1, tick_ms) <= 0) return true;
  std::array<char, 65536> part;
  const ssize_t bytes = ::read(descriptor, part.data(), part.size());
  if (bytes > 0) text.append(part.data(), static_cast<std::size_t>(bytes));
  return bytes > 0 || (bytes < 0 && errno == EINTR);
}

// 0, or why it did not start.
int spawn(std::vector<std::string> arguments, std::vector<std::string> environment, int output,
          pid_t& child) {
  const SpawnActions actions(output);
  return ::posix_spawnp(&child, arguments[0].c_str(), actions.get(), nullptr,
                        pointers(arguments).data(), pointers(environment).data());
}

}  // namespace

std::optional<ChildOutput> run_child(const std::vector<std::string>& arguments,
                                     const std::vector<std::string>& environment,
                                     const std::function<void()>& tick) {
  Pipe pipe;
  pid_t child = 0;
  const int failure = spawn(arguments, environment_with(environment), pipe.writing(), child);
  if (failure == ENOENT) return std::nullopt;
  if (failure != 0) throw SystemError("start", arguments[0], failure);
  pipe.close_writing();
  ChildOutput output;
  try {
    while (read_some(pipe.reading(), output.text)) tick();
  } catch (...) {
    ::kill(child, SIGTERM);
    wait_for(child);
    throw;
  }
  output.exit_status = wait_for(child);
  return output;
}

}  // namespace strata
