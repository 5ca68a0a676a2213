#pragma once
// Whether a directory can hold a store's part, and room on its drive. The checks throw ConfigError
// with the facts and the way out.

#include <cstdint>
#include <string>

#include "strata/core/error.hpp"
#include "strata/io/file_system.hpp"

namespace strata {

// check_drive_directory() for a directory of any file system: of others than the host's nothing is
// known before a part is made there.
void check_store_directory(const FileSystem& files, const std::string& directory);
void check_drive_space(const FileSystem& files, const std::string& directory, std::uint64_t bytes);

// The way out of an error that is being handled, while a part is made: ConfigError when directory,
// permissions or room are lacking, else the error itself.
[[noreturn]] void rethrow_as_config_error(const SystemError& error, const std::string& directory);

}  // namespace strata
