#pragma once
// A text file made anew, or replaced as a whole: a reader finds the old text or the new, never a
// part.

#include <filesystem>
#include <string>

namespace strata {

// All of a file; `what` names it in errors: "the config". Throws ConfigError.
std::string read_text_file(const std::filesystem::path& path, const std::string& what);

// What is no regular file, such as /dev/stdout, is written to. Throws SystemError.
void replace_text_file(const std::filesystem::path& path, const std::string& text);

}  // namespace strata
