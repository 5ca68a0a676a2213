#pragma once
// The command line: parses, builds the parts, runs. Alone knows concrete types.

namespace strata {

// Runs one command. Returns the process exit code: 0 done, 1 failure, 2 bad usage or config, 130
// stopped by a signal. A drive that no longer answers ends the process with 3 (StallPolicy).
int run_command_line(int argc, char** argv);

}  // namespace strata
