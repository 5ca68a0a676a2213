#pragma once
// A text file made anew, or replaced.

#include <filesystem>
#include <string>

namespace strata {

void replace_text_file(const std::filesystem::path& path,
                       const std::string& text);  // Throws SystemError.

}  // namespace strata
