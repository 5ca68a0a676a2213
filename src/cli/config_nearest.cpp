#include <algorithm>
#include <numeric>

#include "strata/cli/config.hpp"

namespace strata {
namespace {

// Edits (insert, delete, replace) that turn one name into the other.
std::size_t edit_distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < to.size(); ++j) {
      const std::size_t replaced = diagonal + (from[i] == to[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row[to.size()];
}

constexpr std::size_t name_length_max = 256;  // bounds the work that a hostile file can ask for

}  // namespace

std::string nearest_name(std::string_view name, std::span<const std::string> known) {
  if (name.size() > name_length_max) return {};
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(1, name.size() / 4) + 1;
  for (const std::string& candidate : known) {
    const std::size_t distance = edit_distance(name, candidate);
    if (distance >= best_distance) continue;
    best_distance = distance;
    best = candidate;
  }
  return best;
}

}  // namespace strata
