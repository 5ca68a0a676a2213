#pragma once
// Ids that cannot be mixed up: StrongId<struct ShardTag>.

#include <compare>
#include <cstddef>
#include <cstdint>

namespace strata {

template <typename Tag>
struct StrongId {
  std::int32_t value = -1;
  constexpr bool valid() const { return value >= 0; }
  constexpr std::size_t index() const { return static_cast<std::size_t>(value); }
  constexpr auto operator<=>(const StrongId&) const = default;
};

}  // namespace strata
