#pragma once
// A Process is one run of a program: its output goes to two files, so that a test can look at it
// while it runs. Thread contract: one thread. Destroyed while running, it is killed.

#include <sys/resource.h>
#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace strata {

struct ProcessOptions {
  std::map<int, rlim_t> limits;                    // RLIMIT_FSIZE: bytes
  std::map<std::string, std::string> environment;  // on top of the test's own
};

struct ProcessResult {
  int exit_code = -1;  // -1: ended by a signal
  int signal = 0;      // that ended it
  std::string out, err;
};

class Process {
 public:
  Process(const std::filesystem::path& output_folder, std::vector<std::string> arguments,
          const ProcessOptions& options = {});
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t id() const { return id_; }  // -1: it has ended
  void kill(int signal) const;
  void limit(int resource, rlim_t value) const;  // from now on
  std::string out() const;                       // so far
  std::string err() const;
  // Waits until `text` stands in out(); false when the process ended before.
  bool wait_for_output(const std::string& text);
  bool wait_for_error(const std::string& text);  // the same in err()
  bool is_running();
  ProcessResult wait();

 private:
  bool wait_for(const std::string& text, const std::filesystem::path& file);

  std::filesystem::path out_, err_;
  pid_t id_ = -1;
  int status_ = 0;
};

}  // namespace strata
