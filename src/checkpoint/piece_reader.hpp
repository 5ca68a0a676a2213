#pragma once
// A PieceReader reads pieces of a checkpoint from its files, directly from the drive, and compares
// their checksums. It keeps the memory of as many readings as were ever under way together.
//
// Thread contract: read() from any thread.

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "chunk_pipe.hpp"
#include "strata/checkpoint/state_checkpoint.hpp"
#include "vector_files.hpp"

namespace strata {

// How the reading of one piece ended.
struct PieceOutcome {
  const StatePiece* piece = nullptr;
  std::uint64_t checksum = 0;  // found
  bool is_zero_behind = true;  // the rest of the file, when the piece ends its vector
  IoResult failure = {};       // of the first transfer that failed
};

class PieceReader {
 public:
  // `at`: in the vector's file.
  using OnBytes = std::function<void(std::uint64_t at, std::span<const std::byte> bytes)>;
  using OnPiece = std::function<void(const PieceOutcome&)>;

  // Opens the files of all vectors in `folder`. Throws SystemError.
  PieceReader(IoEngine& engine, std::string folder, const std::vector<StateVector>& vectors);
  // Reads from `files`, which are open and outlive the readings.
  PieceReader(IoEngine& engine, std::string folder, const std::vector<StateVector>& vectors,
              const VectorFiles& files);

  // Reads pieces whole, in order: their own bytes go to `on_bytes`, not yet compared, and after its
  // last one a piece goes to `on_piece`. What these throw ends the reading.
  void read(std::span<const StatePiece> pieces, const ReadPace& pace, const OnBytes& on_bytes,
            const OnPiece& on_piece) const;

  // Sentences; none when the piece's bytes are as written, and those behind them zeros.
  std::string damage(const PieceOutcome& outcome) const;
  std::string disorder_behind(const PieceOutcome& outcome) const;

  const StateVector& vector_of(const StatePiece& piece) const {
    return vectors_[static_cast<std::size_t>(piece.vector)];
  }
  std::string file_of(const StatePiece& piece) const;

 private:
  class Lease;
  class Reading;

  FileExtent extent_of(const StatePiece& piece) const;
  std::string place_of(const StatePiece& piece) const;

  IoEngine& engine_;
  const std::string folder_;
  const std::vector<StateVector> vectors_;
  VectorFiles own_files_;
  const VectorFiles& files_;

  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<ChunkPipe>> idle_pipes_;  // guarded by mutex_
};

}  // namespace strata
