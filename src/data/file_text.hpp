#pragma once
// A whole file as a string.

#include <filesystem>
#include <string>

namespace strata {

// Throws SystemError.
std::string read_file_text(const std::filesystem::path& path);

}  // namespace strata
