#include "telemetry/op_label.hpp"

#include <fmt/format.h>

namespace strata {
namespace {

std::string tile_label(const Program& program, const TileRef& tile) {
  if (!tile.shard.valid()) return "";
  std::string text = " " + program.shard(tile.shard).name;
  if (tile.tile >= 0) text += fmt::format(" tile {}", tile.tile);
  return text;
}

}  // namespace

std::string op_label(const Program& program, const Op& op) {
  const bool is_segment =
      op.kind == OpKind::run || op.kind == OpKind::update || op.kind == OpKind::norm;
  if (is_segment && op.segment.valid()) return program.segment(op.segment).name;
  const std::string kind(op_kind_name(op.kind));
  const bool is_of_all = op.kind == OpKind::report || op.kind == OpKind::commit;
  if (op.operands.empty() || is_of_all) return kind;
  return kind + tile_label(program, op.operands.front().what);
}

}  // namespace strata
