#include "strict_json.hpp"

#include <fmt/format.h>

#include <unordered_set>
#include <vector>

#include "display.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

using nlohmann::json;

constexpr int depth_max = 64;

// Watches the parser: nlohmann's own keeps the last of several equal keys without a word.
class Watcher {
 public:
  Watcher(const std::string& source, const RootMember& on_root_member)
      : source_(source), on_root_member_(on_root_member) {}

  bool operator()(int depth, json::parse_event_t event, json& parsed) {
    if (depth > depth_max) {
      throw FormatError(fmt::format("{}: JSON nested deeper than {}", source_, depth_max));
    }
    switch (event) {
      case json::parse_event_t::object_start:
        keys_.emplace_back();
        return true;
      case json::parse_event_t::key:
        return enter(depth, parsed.get_ref<const std::string&>());
      case json::parse_event_t::object_end:
        keys_.pop_back();
        return leave(depth, parsed);
      case json::parse_event_t::array_start:
        return true;
      case json::parse_event_t::array_end:
      case json::parse_event_t::value:
        return leave(depth, parsed);
    }
    return true;
  }

 private:
  bool enter(int depth, const std::string& key) {
    if (!keys_.back().insert(key).second) {
      throw FormatError(fmt::format("{}: duplicate key {}", source_, quote_name(key)));
    }
    if (depth == 1) root_key_ = key;
    return true;
  }

  bool leave(int depth, json& value) {
    const bool is_root_member = depth == 1 && keys_.size() == 1;
    return !is_root_member || !on_root_member_ || on_root_member_(root_key_, value);
  }

  const std::string& source_;
  const RootMember& on_root_member_;
  std::vector<std::unordered_set<std::string>> keys_;  // of the open objects, outermost first
  std::string root_key_;
};

}  // namespace

json parse_strict_json(std::string_view text, const std::string& source,
                       const RootMember& on_root_member) {
  // The parser takes a NUL byte for the end of its input and would not see what follows.
  if (text.find('\0') != std::string_view::npos) {
    throw FormatError(source + ": a NUL byte in JSON text");
  }
  try {
    return json::parse(text.begin(), text.end(), Watcher(source, on_root_member));
  } catch (const json::exception& error) {
    throw FormatError(fmt::format("{}: not valid JSON in UTF-8: {}", source, error.what()));
  }
}

}  // namespace strata
