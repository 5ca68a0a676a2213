#include "train/state_tiles.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

namespace strata {
namespace {

constexpr std::array state_roles = {Role::weight, Role::master, Role::moment1, Role::moment2};
constexpr std::array state_dtypes = {DType::f32, DType::bf16, DType::u16, DType::q8};
constexpr std::int64_t count_max = std::int64_t{1} << 48;

// Takes a text apart from its end.
class NameReader {
 public:
  explicit NameReader(std::string_view text) : text_(text) {}

  // The number that ends the text behind `before`, which goes with it.
  std::int64_t number(std::string_view before) {
    const std::string_view digits = word(before);
    std::int64_t value = -1;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    is_good_ &= error == std::errc() && end == digits.data() + digits.size() && value >= 0 &&
                value <= count_max;
    return value;
  }
  std::string_view word(std::string_view before) {
    const auto at = text_.rfind(before);
    is_good_ &= at != std::string_view::npos;
    if (!is_good_) return {};
    const std::string_view found = text_.substr(at + before.size());
    text_ = text_.substr(0, at);
    return found;
  }
  std::string_view rest() const { return text_; }
  bool is_good() const { return is_good_; }

 private:
  std::string_view text_;
  bool is_good_ = true;
};

template <typename Kind, std::size_t N, typename Name>
std::optional<Kind> named(const std::array<Kind, N>& kinds, Name name_of, std::string_view name) {
  for (const Kind kind : kinds)
    if (name_of(kind) == name) return kind;
  return std::nullopt;
}

}  // namespace

StateTile state_tile(const Program& program, ShardId shard, int tile) {
  const Shard& facts = program.shard(shard);
  const std::int64_t total = program.model_elements(shard);
  StateTile state;
  state.vector = {facts.role, program.blocks[static_cast<std::size_t>(facts.block)], facts.dtype,
                  total};
  state.first = program.place_begin(shard, program.place(shard, tile));
  state.room = program.tile_count(shard, tile);
  state.count = std::clamp<std::int64_t>(total - state.first, 0, state.room);
  return state;
}

std::string state_tile_name(const StateTile& tile) {
  return fmt::format("{}/{} {} [{}, {}) of {}, room {}", role_name(tile.vector.role),
                     tile.vector.block, dtype_name(tile.vector.dtype), tile.first,
                     tile.first + tile.count, tile.vector.count, tile.room);
}

std::optional<StateTile> parse_state_tile_name(const std::string& name) {
  NameReader reader(name);
  StateTile tile;
  tile.room = reader.number(", room ");
  tile.vector.count = reader.number(") of ");
  tile.count = reader.number(", ");
  tile.first = reader.number(" [");
  const auto dtype = named(state_dtypes, dtype_name, reader.word(" "));
  const auto slash = reader.rest().find('/');
  if (!reader.is_good() || !dtype || slash == std::string_view::npos) return std::nullopt;
  const auto role = named(state_roles, role_name, reader.rest().substr(0, slash));
  if (!role) return std::nullopt;
  tile.count -= tile.first;
  if (tile.count < 0 || tile.count > tile.room || tile.first % norm_chunk_elements != 0)
    return std::nullopt;
  tile.vector.role = *role;
  tile.vector.block = reader.rest().substr(slash + 1);
  tile.vector.dtype = *dtype;
  return tile;
}

}  // namespace strata
