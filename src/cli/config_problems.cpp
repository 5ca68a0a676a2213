#include "config_problems.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace strata {

void ConfigProblems::add(int rank, std::string text) {
  // One bad table of three roles is one problem.
  if (std::ranges::none_of(texts_, [&](const auto& known) { return known.second == text; }))
    texts_.emplace(rank, std::move(text));
}

void ConfigProblems::check() const {
  if (texts_.empty()) return;
  if (texts_.size() == 1) throw ConfigError(texts_.begin()->second);
  std::string text = fmt::format("{} settings cannot be taken:", texts_.size());
  for (const auto& [rank, problem] : texts_) text += "\n  " + problem;
  throw ConfigError(text);
}

}  // namespace strata
