#include <fmt/format.h>

#include "io/threads/threads_queue.hpp"
#include "strata/core/error.hpp"
#include "strata/io/io_engine.hpp"

namespace strata {
namespace {

std::unique_ptr<IoEngine> make_best_engine(const IoOptions& options) {
  try {
    return make_uring_engine(options);
  } catch (const SystemError& error) {
    return make_threads_engine(options, error.what());
  }
}

}  // namespace

std::unique_ptr<IoEngine> make_io_engine(std::string_view name, const IoOptions& options) {
  if (name == "auto") return make_best_engine(options);
  if (name == "uring") return make_uring_engine(options);
  if (name == "threads") return make_threads_engine(options);
  throw ConfigError(
      fmt::format("unknown I/O engine '{}': it must be auto, uring or threads", name));
}

}  // namespace strata
