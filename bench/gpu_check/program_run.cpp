#include "gpu_check/program_run.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>

namespace strata {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int not_started_code = 127;  // of the child, as in a shell
constexpr std::size_t tail_bytes = 4000;
constexpr auto grace = std::chrono::seconds(3);  // from SIGTERM to SIGKILL
constexpr auto kill_patience = std::chrono::seconds(10);

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Runs in the child. The pipe closes when the program starts; else it carries why not.
[[noreturn]] void become(const ProgramCall& call, char* const* arguments, int output, int pipe) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int input = ::open("/dev/null", O_RDONLY);
  ::dup2(input, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  for (const auto& [name, value] : call.environment) ::setenv(name.c_str(), value.c_str(), 1);
  ::execvp(arguments[0], arguments);
  const int why = errno;
  if (::write(pipe, &why, sizeof why) < 0) ::_exit(not_started_code + 1);
  ::_exit(not_started_code);
}

std::string tail_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  return text.size() <= tail_bytes ? text : text.substr(text.size() - tail_bytes);
}

bool has_ended(pid_t id, int& status) { return ::waitpid(id, &status, WNOHANG) == id; }

bool ends_within(pid_t id, int& status, Clock::duration patience) {
  const auto deadline = Clock::now() + patience;
  while (!has_ended(id, status)) {
    if (Clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

// What a driver holds may never die: nobody waits for it for long.
void end(pid_t id, int& status) {
  ::kill(-id, SIGTERM);
  if (ends_within(id, status, grace)) return;
  ::kill(-id, SIGKILL);
  ends_within(id, status, kill_patience);
}

ProgramEnd wait_for(pid_t id, double seconds_max) {
  ProgramEnd result;
  int status = 0;
  const auto patience = std::chrono::duration<double>(seconds_max);
  const bool in_time = ends_within(id, status, std::chrono::ceil<Clock::duration>(patience));
  if (!in_time) end(id, status);
  ::kill(-id, SIGKILL);  // what it has left behind
  if (!in_time) {
    result.how = ProgramEnd::How::timed_out;
  } else if (WIFSIGNALED(status)) {
    result.how = ProgramEnd::How::signalled;
    result.code = WTERMSIG(status);
  } else {
    result.how = ProgramEnd::How::exited;
    result.code = WEXITSTATUS(status);
  }
  return result;
}

int created(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor < 0)
    throw std::runtime_error(fmt::format("cannot create {}: {}", path.string(), ::strerror(errno)));
  return descriptor;
}

// Why the child could not become the program; 0: it did.
int start_error(int pipe) {
  int why = 0;
  const ssize_t got = ::read(pipe, &why, sizeof why);
  ::close(pipe);
  return got == sizeof why ? why : 0;
}

std::string last_line(const std::string& text) {
  std::string last;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find_first_of("\r\n", begin), text.size());
    if (text.find_first_not_of(" \t", begin) < end) last = text.substr(begin, end - begin);
    begin = end + 1;
  }
  return last;
}

}  // namespace

ProgramEnd run_program(const ProgramCall& call) {
  std::vector<char*> pointers;
  std::vector<std::string> arguments = call.arguments;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0) throw std::runtime_error("cannot make a pipe");
  const int output = created(call.output_file);
  const auto begin = Clock::now();
  const pid_t id = ::fork();
  if (id == 0) become(call, pointers.data(), output, pipe[1]);
  ::close(output);
  ::close(pipe[1]);
  if (id < 0) throw std::runtime_error("cannot fork");
  const int why = start_error(pipe[0]);
  ProgramEnd result = wait_for(id, call.seconds_max);
  if (why != 0) result = {ProgramEnd::How::not_started, why, 0, {}};
  result.seconds = seconds_since(begin);
  result.output_tail = tail_of(call.output_file);
  return result;
}

std::string complaint(const ProgramEnd& end) {
  std::string text;
  switch (end.how) {
    case ProgramEnd::How::exited:
      text = fmt::format("exit code {}", end.code);
      break;
    case ProgramEnd::How::signalled:
      text = fmt::format("ended by signal {}", end.code);
      break;
    case ProgramEnd::How::timed_out:
      text = fmt::format("ended after {:.0f} s", end.seconds);
      break;
    case ProgramEnd::How::not_started:
      return fmt::format("cannot be started: {}", ::strerror(end.code));
  }
  const std::string last = last_line(end.output_tail);
  return last.empty() ? text : text + ": " + last;
}

}  // namespace strata
