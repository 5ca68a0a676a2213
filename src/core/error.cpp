#include "strata/core/error.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "strata/core/bytes.hpp"

namespace strata {
namespace {

std::string memory_message(std::string_view where, std::uint64_t wanted, std::uint64_t free,
                           std::string_view advice) {
  std::string text = fmt::format("out of memory: {} needs {} ({} bytes), {} ({} bytes) available",
                                 where, format_bytes(wanted), wanted, format_bytes(free), free);
  if (!advice.empty()) text += fmt::format("\n{}", advice);
  return text;
}

}  // namespace

OutOfMemory::OutOfMemory(std::string_view where, std::uint64_t wanted_bytes,
                         std::uint64_t free_bytes, std::string_view advice)
    : Error(memory_message(where, wanted_bytes, free_bytes, advice)),
      where_(where),
      wanted_bytes_(wanted_bytes),
      free_bytes_(free_bytes) {}

SystemError::SystemError(std::string_view action, std::string_view subject, int error_number)
    : Error(fmt::format("cannot {} {}: {} (errno {})", action, subject, std::strerror(error_number),
                        error_number)),
      error_number_(error_number) {}

long check(long result, std::string_view action, std::string_view subject) {
  if (result < 0) throw SystemError(action, subject, errno);
  return result;
}

void invariant_broken(const std::source_location& where) {
  std::fprintf(stderr, "strata: broken invariant at %s:%u in %s\n", where.file_name(), where.line(),
               where.function_name());
  std::abort();
}

}  // namespace strata
