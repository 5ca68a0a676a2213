#pragma once
// Texts that must be alike, and what to say when they are not. Thread contract: any thread.

#include <string>
#include <string_view>

namespace strata {

// A text on one line, from a little before byte `at`: "...stage: 2\nworld...". What does not print
// is escaped.
std::string excerpt(std::string_view text, std::size_t at);

// "process 0 (...) has "..." where process 1 (...) has "..."", around the first difference.
std::string describe_difference(const std::string& name, std::string_view text,
                                const std::string& other_name, std::string_view other_text);

}  // namespace strata
