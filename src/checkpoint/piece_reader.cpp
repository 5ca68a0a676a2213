#include "piece_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "checkpoint_names.hpp"
#include "io/store/checksum.hpp"
#include "strata/core/bytes.hpp"

namespace strata {
namespace {

struct ByteRange {
  std::uint64_t begin = 0, end = 0;
};

ByteRange bytes_of(const StateVector& vector, const StatePiece& piece) {
  return {state_vector_offset(vector, piece.first),
          state_vector_offset(vector, piece.first + piece.count)};
}

bool ends_vector(const StateVector& vector, const StatePiece& piece) {
  return piece.first + piece.count == vector.count;
}

// The bytes of a chunk that lie in a range of its file.
std::span<const std::byte> within(const FileChunk& chunk, const ByteRange& range) {
  const std::uint64_t begin = std::max(range.begin, chunk.offset);
  const std::uint64_t end = std::min(range.end, chunk.offset + chunk.bytes.size());
  if (begin >= end) return {};
  return chunk.bytes.subspan(begin - chunk.offset, end - begin);
}

bool is_zero(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [](std::byte one) { return one == std::byte{0}; });
}

}  // namespace

// A pipe of the reader's for as long as it lives.
class PieceReader::Lease {
 public:
  explicit Lease(const PieceReader& reader) : reader_(reader), pipe_(take()) {}
  ~Lease() {
    const std::lock_guard lock(reader_.mutex_);
    reader_.idle_pipes_.push_back(std::move(pipe_));
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  ChunkPipe& pipe() { return *pipe_; }

 private:
  std::unique_ptr<ChunkPipe> take() {
    {
      const std::lock_guard lock(reader_.mutex_);
      if (!reader_.idle_pipes_.empty()) {
        auto pipe = std::move(reader_.idle_pipes_.back());
        reader_.idle_pipes_.pop_back();
        return pipe;
      }
    }
    return std::make_unique<ChunkPipe>();
  }

  const PieceReader& reader_;
  std::unique_ptr<ChunkPipe> pipe_;
};

// Puts the chunks of one piece after the other together.
class PieceReader::Reading {
 public:
  Reading(const PieceReader& reader, std::span<const StatePiece> pieces, const OnBytes& on_bytes,
          const OnPiece& on_piece)
      : reader_(reader), pieces_(pieces), on_bytes_(on_bytes), on_piece_(on_piece) {}

  void take(const FileChunk& chunk) {
    const StatePiece& piece = pieces_[chunk.extent];
    if (outcome_.piece != &piece) begin(piece);
    if (chunk.result.ok())
      take_bytes(chunk);
    else if (outcome_.failure.ok())
      outcome_.failure = chunk.result;
    if (chunk.is_last) end();
  }

 private:
  void begin(const StatePiece& piece) {
    outcome_ = {.piece = &piece};
    checksum_.restart();
  }
  void take_bytes(const FileChunk& chunk) {
    const StateVector& vector = reader_.vector_of(*outcome_.piece);
    const ByteRange range = bytes_of(vector, *outcome_.piece);
    const auto own = within(chunk, range);
    checksum_.add(own);
    if (on_bytes_ && !own.empty()) on_bytes_(std::max(range.begin, chunk.offset), own);
    if (ends_vector(vector, *outcome_.piece))
      outcome_.is_zero_behind &= is_zero(within(chunk, {range.end, ~std::uint64_t{0}}));
  }
  void end() {
    outcome_.checksum = checksum_.value();
    on_piece_(outcome_);
  }

  const PieceReader& reader_;
  const std::span<const StatePiece> pieces_;
  const OnBytes& on_bytes_;
  const OnPiece& on_piece_;
  PieceOutcome outcome_;
  RunningChecksum checksum_;
};

PieceReader::PieceReader(IoEngine& engine, std::string folder,
                         const std::vector<StateVector>& vectors)
    : PieceReader(engine, std::move(folder), vectors, own_files_) {
  for (std::size_t i = 0; i < vectors_.size(); ++i)
    own_files_.open(folder_ + "/" + vector_file_name(i, vectors_[i]), OpenMode::read_only,
                    Caching::direct);
}

PieceReader::PieceReader(IoEngine& engine, std::string folder,
                         const std::vector<StateVector>& vectors, const VectorFiles& files)
    : engine_(engine),
      folder_(std::move(folder)),
      vectors_(vectors),
      own_files_(engine),
      files_(files) {}

void PieceReader::read(std::span<const StatePiece> pieces, const ReadPace& pace,
                       const OnBytes& on_bytes, const OnPiece& on_piece) const {
  std::vector<FileExtent> extents;
  extents.reserve(pieces.size());
  for (const StatePiece& piece : pieces) extents.push_back(extent_of(piece));
  Lease lease(*this);
  Reading reading(*this, pieces, on_bytes, on_piece);
  lease.pipe().run(engine_, extents, pace, [&](const FileChunk& chunk) { reading.take(chunk); });
}

FileExtent PieceReader::extent_of(const StatePiece& piece) const {
  const ByteRange range = bytes_of(vector_of(piece), piece);
  const std::uint64_t begin = range.begin / checkpoint_alignment * checkpoint_alignment;
  return {files_.file(piece.vector), begin, align_up(range.end, checkpoint_alignment) - begin};
}

std::string PieceReader::file_of(const StatePiece& piece) const {
  return folder_ + "/" + vector_file_name(static_cast<std::size_t>(piece.vector), vector_of(piece));
}

std::string PieceReader::place_of(const StatePiece& piece) const {
  const StateVector& vector = vector_of(piece);
  const ByteRange range = bytes_of(vector, piece);
  return fmt::format("{} ({} bytes at offset {} of {})",
                     quoted_elements(vector, piece.first, piece.first + piece.count),
                     range.end - range.begin, range.begin, file_of(piece));
}

std::string PieceReader::damage(const PieceOutcome& outcome) const {
  const StatePiece& piece = *outcome.piece;
  if (!outcome.failure.ok())
    return fmt::format("{} cannot be read: {}", place_of(piece), outcome.failure.message);
  if (outcome.checksum == piece.checksum) return "";
  return fmt::format("{} are damaged: their checksum is {:016x}, when written it was {:016x}",
                     place_of(piece), outcome.checksum, piece.checksum);
}

std::string PieceReader::disorder_behind(const PieceOutcome& outcome) const {
  if (outcome.is_zero_behind) return "";
  return fmt::format("{} is damaged: behind the end of {} it has other bytes than zeros",
                     file_of(*outcome.piece), quoted_vector(vector_of(*outcome.piece)));
}

}  // namespace strata
