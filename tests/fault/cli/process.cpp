#include "fault/cli/process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>
#include <utility>

namespace strata {
namespace {

namespace fs = std::filesystem;

// Not a measure of anything: a test that would wait for ever ends with what the process has said.
constexpr auto patience = std::chrono::minutes(4);

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

int number_of_processes() {
  static std::atomic<int> number{0};
  return number++;
}

// Runs in the child: nothing that allocates or locks after fork, but for what exec needs.
[[noreturn]] void become(char* const* arguments, int out, int err, const ProcessOptions& options) {
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  for (const auto& [name, value] : options.environment) ::setenv(name.c_str(), value.c_str(), 1);
  for (const auto& [resource, value] : options.limits) {
    const rlimit limit{value, value};
    ::setrlimit(static_cast<__rlimit_resource>(resource), &limit);
  }
  ::execvp(arguments[0], arguments);
  ::_exit(127);
}

int created(const fs::path& path) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor < 0) throw std::runtime_error("cannot create " + path.string());
  return descriptor;
}

}  // namespace

Process::Process(const fs::path& output_folder, std::vector<std::string> arguments,
                 const ProcessOptions& options) {
  const std::string name = "process-" + std::to_string(number_of_processes());
  out_ = output_folder / (name + ".out");
  err_ = output_folder / (name + ".err");
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  const int out = created(out_), err = created(err_);
  id_ = ::fork();
  if (id_ == 0) become(pointers.data(), out, err, options);
  ::close(out);
  ::close(err);
  if (id_ < 0) throw std::runtime_error("cannot fork");
}

Process::~Process() {
  if (!is_running()) return;
  kill(SIGKILL);
  ::waitpid(id_, &status_, 0);
}

void Process::kill(int signal) const {
  if (id_ > 0) ::kill(id_, signal);
}

void Process::limit(int resource, rlim_t value) const {
  const rlimit limited{value, value};
  if (::prlimit(id_, static_cast<__rlimit_resource>(resource), &limited, nullptr) != 0)
    throw std::runtime_error("cannot limit a process");
}

std::string Process::out() const { return text_of(out_); }
std::string Process::err() const { return text_of(err_); }

bool Process::is_running() {
  if (id_ > 0 && ::waitpid(id_, &status_, WNOHANG) == id_) id_ = -1;
  return id_ > 0;
}

bool Process::wait_for_output(const std::string& text) { return wait_for(text, out_); }
bool Process::wait_for_error(const std::string& text) { return wait_for(text, err_); }

bool Process::wait_for(const std::string& text, const fs::path& file) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (std::chrono::steady_clock::now() < deadline) {
    const bool runs = is_running();
    if (text_of(file).find(text) != std::string::npos) return true;
    if (!runs) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

ProcessResult Process::wait() {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (is_running()) {
    if (std::chrono::steady_clock::now() > deadline)
      throw std::runtime_error("a process does not end; it has said:\n" + out() + err());
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  ProcessResult result;
  if (WIFEXITED(status_)) result.exit_code = WEXITSTATUS(status_);
  if (WIFSIGNALED(status_)) result.signal = WTERMSIG(status_);
  result.out = out();
  result.err = err();
  return result;
}

}  // namespace strata
