#pragma once
// A DriveLoad keeps drives busy the way a run does: whole blocks, one after the other through a
// file and, if asked, over again, each in memory of its own, `depth` of them at the kernel per
// drive.
//
// Thread contract: one thread calls; completions come on the engine's threads and only count, so
// that new blocks are handed over by the caller's thread.

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "strata/io/io_engine.hpp"
#include "strata/measure/nvme_report.hpp"

namespace strata {

// One drive's part of a load.
struct LoadLane {
  FileId source, target;         // read from; written to
  std::uint64_t file_bytes = 0;  // of each
  std::span<std::byte> memory;   // aligned; a block at least
};

enum class BlocksAhead : std::uint8_t {
  none,    // no more submitted than are in flight: latencies are the drive's
  queued,  // more wait at the engine, so that the drive never waits for us: rates
};

enum class AtFileEnd : std::uint8_t {
  again,  // from the file's beginning
  stop,   // no block twice, however often it runs: the load ends when every file has
};

struct LoadShape {
  NvmePattern pattern = NvmePattern::read;
  std::uint64_t block_bytes = 0;
  int depth = 1;  // less where the memory holds fewer blocks
  BlocksAhead ahead = BlocksAhead::queued;
  AtFileEnd at_end = AtFileEnd::again;
};

// What has been done so far.
struct LoadState {
  double seconds = 0;
  std::vector<std::uint64_t> lane_bytes;
};

struct LoadSample {
  double seconds = 0;  // until the last completion
  double cpu_seconds = 0;
  std::vector<std::uint64_t> lane_bytes;
  std::vector<double> latencies_us;  // of each block, where none was ahead

  double bytes() const;
  double bytes_per_s() const { return bytes() / seconds; }
  double cpu_seconds_per_gb() const { return cpu_seconds / (bytes() * 1e-9); }
};

class DriveLoad {
 public:
  DriveLoad(IoEngine& engine, std::span<const LoadLane> lanes, const LoadShape& shape);
  ~DriveLoad();
  DriveLoad(const DriveLoad&) = delete;
  DriveLoad& operator=(const DriveLoad&) = delete;

  int depth() const { return depth_; }  // per drive, as it is

  // Called about ten times a second from run()'s thread. What it throws ends the load, once
  // everything in flight has come back.
  using Tick = std::function<void(const LoadState&)>;
  // Ends early where no block is left. Throws Error with the message of the first transfer that
  // failed.
  LoadSample run(double duration_s, const Tick& tick);

 private:
  struct Block;
  struct Lane;

  void add_lane(const LoadLane& lane);
  void keep_busy(double duration_s, const Tick& tick);
  void submit_idle();
  bool has_more() const;
  IoRequest next_request(Lane& lane);
  bool wait_for_news();
  void drain();
  void finish(Block& block, const IoResult& result);
  LoadState state() const;

  IoEngine& engine_;
  const LoadShape shape_;
  int depth_ = 0;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<IoRequest> requests_;  // being handed over
  std::int64_t start_ns_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable news_;
  // Guarded by mutex_, as are the lanes' idle blocks and bytes.
  bool has_news_ = false;
  std::size_t num_in_flight_ = 0;
  std::int64_t last_ns_ = 0;
  std::string failure_;
  std::vector<double> latencies_us_;
};

}  // namespace strata
