#pragma once
// Runs another program without a shell and takes what it prints.
// Thread contract: one thread.

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace strata {

struct ChildOutput {
  int exit_status = 0;  // 128 and the signal's number for one that was killed
  std::string text;     // standard output; standard error is dropped
};

// `environment`: "NAME=value" entries, set beside or instead of our own. Nothing when there is no
// such program. `tick` is called about ten times a second; when it throws, the program is ended and
// waited for. Throws SystemError when the program cannot be started for another reason.
std::optional<ChildOutput> run_child(const std::vector<std::string>& arguments,
                                     const std::vector<std::string>& environment,
                                     const std::function<void()>& tick);

}  // namespace strata
