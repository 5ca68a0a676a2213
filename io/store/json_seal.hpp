#pragma once
// A seal ends a JSON object with a checksum of all that is before it:
//
//   ,
//   "xxh3": "0123456789abcdef"
//   }
//
// Thread contract: pure functions.

#include <cstddef>
#include <string>
#include <string_view>

namespace strata {

inline constexpr std::string_view json_seal_begin = ",\n\"xxh3\": \"";
inline constexpr std::size_t json_seal_bytes = json_seal_begin.size() + 16 + 4;

// `body`: an object without its closing brace.
std::string with_json_seal(std::string body);
bool has_json_seal(std::string_view text);  // and it is right
// `text` with its checksum made right. For tests, which damage what is before it.
std::string resealed_json(std::string text);

}  // namespace strata
