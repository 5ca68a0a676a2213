#pragma once
// Runs another program with a time limit and takes all that it prints. A program that runs past the
// limit is ended together with what it has started. Thread contract: one thread.

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace strata {

struct ProgramCall {
  std::vector<std::string> arguments;  // the program first; looked for on PATH without a slash
  double seconds_max = 0;
  std::filesystem::path output_file;               // gets standard output and error
  std::map<std::string, std::string> environment;  // on top of our own
};

struct ProgramEnd {
  enum class How { exited, signalled, timed_out, not_started };
  How how = How::not_started;
  int code = 0;  // exit code, signal, or errno
  double seconds = 0;
  std::string output_tail;  // the last 4000 bytes

  bool succeeded() const { return how == How::exited && code == 0; }
};

ProgramEnd run_program(const ProgramCall& call);

// "exit code 2: strata: no such file": how it ended, and its last line.
std::string complaint(const ProgramEnd& end);

}  // namespace strata
