#pragma once
// JSON from outside, parsed as hostile input: valid UTF-8, no duplicate keys, no NUL bytes, bounded
// depth. Thread contract: any thread.

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace strata {

// Sees each finished member of the root object and may take it; true keeps it in the document as
// well.
using RootMember = std::function<bool(const std::string& key, nlohmann::json& value)>;

// Throws FormatError naming `source` and the rule.
nlohmann::json parse_strict_json(std::string_view text, const std::string& source,
                                 const RootMember& on_root_member = {});

}  // namespace strata
