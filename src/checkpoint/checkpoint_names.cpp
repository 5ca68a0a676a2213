#include "checkpoint_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "display.hpp"
#include "strata/core/bytes.hpp"

namespace strata {
namespace {

constexpr std::string_view prefix = "checkpoint-";
constexpr std::size_t digits_max = 18;  // always fits

using Ending = std::pair<FolderState, std::string_view>;
constexpr std::array endings = {
    Ending(FolderState::partial, ".partial"), Ending(FolderState::removing, ".removing"),
    Ending(FolderState::replaced, ".replaced"), Ending(FolderState::whole, "")};

std::string_view ending_of(FolderState state) {
  for (const auto& [known, ending] : endings)
    if (known == state) return ending;
  return "";
}

// Without leading zeros, so that a step has one name.
std::optional<std::int64_t> parse_step(std::string_view text) {
  if (text.empty() || text.size() > digits_max || (text.size() > 1 && text[0] == '0'))
    return std::nullopt;
  std::int64_t step = 0;
  for (const char digit : text) {
    if (digit < '0' || digit > '9') return std::nullopt;
    step = step * 10 + (digit - '0');
  }
  return step;
}

std::string_view without_last_slashes(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return path;
}

}  // namespace

std::string folder_name(std::int64_t step, FolderState state) {
  return fmt::format("{}{}{}", prefix, step, ending_of(state));
}

std::optional<FolderName> parse_folder_name(std::string_view name) {
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  for (const auto& [state, ending] : endings) {
    if (!name.ends_with(ending)) continue;
    const auto step = parse_step(name.substr(0, name.size() - ending.size()));
    return step ? std::optional(FolderName{*step, state}) : std::nullopt;
  }
  return std::nullopt;
}

std::string base_name(std::string_view path) {
  path = without_last_slashes(path);
  return std::string(path.substr(path.find_last_of('/') + 1));
}

std::string parent_path(std::string_view path) {
  path = without_last_slashes(path);
  const std::size_t slash = path.find_last_of('/');
  if (slash == std::string_view::npos) return ".";
  return std::string(path.substr(0, std::max<std::size_t>(slash, 1)));
}

std::string vector_file_name(std::size_t index, const StateVector& vector) {
  return fmt::format("{:05}-{}.bin", index, role_name(vector.role));
}

std::uint64_t vector_file_bytes(const StateVector& vector) {
  return align_up(state_vector_bytes(vector), checkpoint_alignment);
}

std::uint64_t vector_files_bytes(std::span<const StateVector> vectors) {
  std::uint64_t bytes = 0;
  for (const StateVector& vector : vectors) bytes += vector_file_bytes(vector);
  return bytes;
}

std::string quoted_vector(const StateVector& vector) {
  return "vector " + quote_name(state_vector_name(vector));
}

std::string quoted_elements(const StateVector& vector, std::int64_t first, std::int64_t end) {
  return fmt::format("elements [{}, {}) of {}", first, end, quoted_vector(vector));
}

}  // namespace strata
