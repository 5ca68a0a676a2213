#include "save_failure.hpp"

#include <fmt/format.h>

#include <cerrno>

#include "checkpoint_names.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

std::string free_text(const SaveSite& site) {
  try {
    const std::uint64_t bytes = site.files.free_bytes(site.directory);
    return fmt::format("{} ({} bytes) are free in {}", format_bytes(bytes), bytes, site.directory);
  } catch (const Error&) {
    return fmt::format("how much is free in {} cannot be told", site.directory);
  }
}

std::string_view advice(int error_number) {
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return "free some space there, keep fewer checkpoints (save_total_limit), or name an "
             "output_dir on another drive";
    case EACCES:
    case EPERM:
    case EROFS:
      return "name an output_dir that this user can write";
    default:
      return "the drive may be failing: see the kernel's log, and name an output_dir on another "
             "drive";
  }
}

std::string message(const SaveSite& site, const std::string& cause, int error_number) {
  return fmt::format("{} was not saved, and earlier checkpoints are as they were: {}; {}; {}",
                     folder_name(site.step, FolderState::whole), cause, free_text(site),
                     advice(error_number));
}

}  // namespace

void rethrow_as_not_saved(const SaveSite& site) {
  try {
    throw;
  } catch (const SystemError& error) {
    throw SystemError(message(site, error.what(), error.error_number()), error.error_number());
  } catch (const ConfigError&) {
    throw;  // says itself what to do
  } catch (const Error& error) {
    throw Error(message(site, error.what(), 0));
  }
}

}  // namespace strata
