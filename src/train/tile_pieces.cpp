#include "train/tile_pieces.hpp"

#include "strata/core/error.hpp"
#include "train/weight_elements.hpp"

namespace strata {
namespace {

bool is_split(const Program& program, ShardId shard) {
  return program.shard(shard).role == Role::master && program.shard(shard).dtype == DType::u16;
}

void join_tiles(std::span<const std::byte> low_bits, std::span<const std::byte> weight,
                std::span<std::byte> target) {
  const std::span<float> values(reinterpret_cast<float*>(target.data()),
                                target.size() / sizeof(float));
  widen_elements(weight.data(), DType::bf16, values);
  join_low_bits(low_bits.data(), values);
}

}  // namespace

TilePieces::TilePieces(const PlannedRun& run)
    : program_(run.program), vectors_(state_vectors(run)), index_(program_.shards.size()) {
  for (int vector = 0; vector < std::ssize(vectors_); ++vector) add(vector);
}

void TilePieces::add(int vector) {
  const StateVector& facts = vectors_[static_cast<std::size_t>(vector)];
  TilePiece piece;
  piece.vector = vector;
  piece.shard = state_shard(program_, facts.role, facts.block);
  if (is_split(program_, piece.shard))
    piece.weight = state_shard(program_, Role::weight, facts.block);
  for (const StateSpan& span : state_spans(program_, piece.shard)) {
    piece.span = span;
    piece.tile = program_.tile_at(piece.shard, span.place);
    if (piece.tile >= 0 && program_.is_own(piece.shard, piece.tile)) add(piece);
  }
}

void TilePieces::add(TilePiece piece) {
  if (piece.weight.valid()) piece.weight_tile = program_.tile_at(piece.weight, piece.span.place);
  std::vector<int>& of_shard = index_[piece.shard.index()];
  of_shard.resize(static_cast<std::size_t>(program_.num_tiles(piece.shard)), -1);
  of_shard[static_cast<std::size_t>(piece.tile)] = static_cast<int>(pieces_.size());
  pieces_.push_back(piece);
}

const TilePiece* TilePieces::find(ShardId shard, int tile) const {
  const std::vector<int>& of_shard = index_[shard.index()];
  if (of_shard.empty()) return nullptr;
  const int index = of_shard[static_cast<std::size_t>(tile)];
  return index < 0 ? nullptr : &pieces_[static_cast<std::size_t>(index)];
}

void TilePieces::write(const TilePiece& piece, std::span<const std::byte> bytes,
                       std::span<const std::byte> weight, SaveBuffers& buffers,
                       CheckpointWriter& writer) const {
  if (writer.has_failed()) return buffers.writer_failed();
  SaveBuffer& buffer = buffers.next();
  fill(piece, bytes, weight, buffer.memory());
  writer.write(piece.vector, piece.span.first, piece.span.count, buffer.memory(), buffer.begin());
}

void TilePieces::fill(const TilePiece& piece, std::span<const std::byte> bytes,
                      std::span<const std::byte> weight, std::span<std::byte> target) const {
  const StateVector& vector = vectors_[static_cast<std::size_t>(piece.vector)];
  const auto size = static_cast<std::size_t>(
      state_vector_bytes({vector.role, "", vector.dtype, piece.span.count}));
  ensure(size <= target.size() && piece.weight.valid() == !weight.empty());
  if (piece.weight.valid()) return join_tiles(bytes, weight, target.first(size));
  moment_to_vector(vector.dtype, program_.tile_count(piece.shard, piece.tile), bytes,
                   piece.span.count, target.first(size));
}

}  // namespace strata
