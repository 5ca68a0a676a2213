#pragma once
// A TileLedger knows, per tile, which place holds the last committed version, and what has been
// written since. Writes go to the place that the committed version does not use.
//
// Thread contract: all methods from any thread.

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "io/store/manifest.hpp"
#include "io/store/store_description.hpp"

namespace strata {

class TileLedger {
 public:
  // `committed`: the version to go on from.
  TileLedger(const StoreDescription& store, Manifest committed);

  enum class State : std::uint8_t {
    never_written,
    torn,  // its last write failed, or was not made durable
    whole,
  };
  struct Present {
    State state = State::never_written;
    TileRecord record;
  };
  // What a read of the tile gives now: what was last written, committed or not.
  Present present(std::size_t tile) const;

  std::uint8_t place_to_write(std::size_t tile) const;
  void begin_write(std::size_t tile);  // torn until
  void end_write(std::size_t tile, std::uint64_t checksum);
  // Nothing written to the drive since the last commit can be relied on.
  void distrust(std::size_t drive);

  std::vector<std::size_t> drives_written() const;  // since the last commit
  std::optional<std::size_t> torn_tile() const;     // the first there is
  // The committed version as it would be with what has been written since.
  Manifest next(std::uint64_t version, const std::string& note) const;
  void commit(Manifest manifest);

  std::optional<std::uint64_t> version() const;
  std::string note() const;

 private:
  struct Written {
    State state = State::never_written;  // since the last commit
    std::uint64_t checksum = 0;
  };
  std::uint8_t free_place(std::size_t tile) const;

  const StoreDescription& store_;
  mutable std::mutex mutex_;
  Manifest committed_;
  std::vector<Written> written_;
};

}  // namespace strata
