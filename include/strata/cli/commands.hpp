#pragma once
// The command line: parses, builds the parts, runs. Alone knows concrete types.

namespace strata {

// Runs one command. Returns the process exit code: 0 done, 1 failure, 2 bad usage or config, 130
// stopped by a signal.
int run_command_line(int argc, char** argv);

}  // namespace strata
