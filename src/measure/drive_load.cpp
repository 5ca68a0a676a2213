#include "drive_load.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <numeric>
#include <utility>

#include "process_cpu.hpp"
#include "strata/core/clock.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

constexpr std::chrono::milliseconds tick_interval{100};
constexpr std::uint64_t ahead_min = 16;  // blocks, where the memory holds them

// Blocks of a lane until its files end.
std::uint64_t num_blocks_max(const LoadLane& lane, const LoadShape& shape) {
  if (shape.at_end == AtFileEnd::again) return std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t num_files = shape.pattern == NvmePattern::mixed ? 2 : 1;
  return num_files * (lane.file_bytes / shape.block_bytes);
}

}  // namespace

struct DriveLoad::Block : IoCompletion {
  Block(DriveLoad& owner, Lane& its_lane, std::byte* its_memory)
      : load(owner), lane(its_lane), memory(its_memory) {}
  void complete(const IoResult& result) noexcept override { load.finish(*this, result); }

  DriveLoad& load;
  Lane& lane;
  std::byte* memory;
  std::int64_t submitted_ns = 0;
};

struct DriveLoad::Lane {
  LoadLane of;
  std::vector<std::unique_ptr<Block>> blocks;
  std::vector<Block*> idle;
  std::size_t wake_at = 1;  // this many idle blocks are worth handing over
  std::uint64_t num_submitted = 0, num_submitted_max = 0;
  std::uint64_t bytes = 0;

  std::uint64_t num_left() const { return num_submitted_max - num_submitted; }
};

double LoadSample::bytes() const {
  return static_cast<double>(std::accumulate(lane_bytes.begin(), lane_bytes.end(), 0ull));
}

DriveLoad::DriveLoad(IoEngine& engine, std::span<const LoadLane> lanes, const LoadShape& shape)
    : engine_(engine), shape_(shape), depth_(shape.depth) {
  ensure(!lanes.empty() && shape.block_bytes > 0 && shape.depth > 0);
  for (const LoadLane& lane : lanes) add_lane(lane);
}

DriveLoad::~DriveLoad() { drain(); }

void DriveLoad::add_lane(const LoadLane& of) {
  ensure(of.memory.size() >= shape_.block_bytes && of.file_bytes >= shape_.block_bytes);
  const std::uint64_t room = of.memory.size() / shape_.block_bytes;
  const auto depth = std::min<std::uint64_t>(static_cast<std::uint64_t>(shape_.depth), room);
  const bool ahead = shape_.ahead == BlocksAhead::queued;
  const auto num_ahead = ahead ? std::min(std::max(depth, ahead_min), room - depth) : 0;
  depth_ = std::min(depth_, static_cast<int>(depth));
  auto lane = std::make_unique<Lane>();
  lane->of = of;
  lane->num_submitted_max = num_blocks_max(of, shape_);
  lane->wake_at = std::max<std::size_t>(1, (num_ahead + 1) / 2);
  for (std::uint64_t at = 0; at < depth + num_ahead; ++at) {
    std::byte* memory = of.memory.data() + at * shape_.block_bytes;
    lane->blocks.push_back(std::make_unique<Block>(*this, *lane, memory));
    lane->idle.push_back(lane->blocks.back().get());
  }
  lanes_.push_back(std::move(lane));
}

LoadSample DriveLoad::run(double duration_s, const Tick& tick) {
  for (const auto& lane : lanes_) lane->bytes = 0;
  latencies_us_.clear();
  const double cpu_before = process_cpu_seconds();
  start_ns_ = last_ns_ = now_ns();
  try {
    keep_busy(duration_s, tick);
  } catch (...) {
    drain();
    throw;
  }
  drain();
  if (!failure_.empty()) throw Error(std::exchange(failure_, {}));
  return {.seconds = seconds(last_ns_ - start_ns_),
          .cpu_seconds = process_cpu_seconds() - cpu_before,
          .lane_bytes = state().lane_bytes,
          .latencies_us = std::move(latencies_us_)};
}

void DriveLoad::keep_busy(double duration_s, const Tick& tick) {
  do {
    submit_idle();
    if (!wait_for_news()) return;
    tick(state());
  } while (has_more() && seconds(now_ns() - start_ns_) < duration_s);
}

bool DriveLoad::has_more() const {
  return std::ranges::any_of(lanes_, [](const auto& lane) { return lane->num_left() > 0; });
}

// Waits for a tick at most. False when a transfer has failed.
bool DriveLoad::wait_for_news() {
  std::unique_lock lock(mutex_);
  news_.wait_for(lock, tick_interval, [&] { return has_news_; });
  has_news_ = false;
  return failure_.empty();
}

void DriveLoad::submit_idle() {
  {
    const std::lock_guard lock(mutex_);
    requests_.clear();
    // In turn, so that every drive gets its first block at once.
    for (bool more = true; more;) {
      more = false;
      for (const auto& lane : lanes_) {
        if (lane->idle.empty() || lane->num_left() == 0) continue;
        requests_.push_back(next_request(*lane));
        more = true;
      }
    }
    num_in_flight_ += requests_.size();
  }
  engine_.submit(requests_);
}

// Reads and writes of a mixed load take turns in the order of submission: as many of each, however
// much faster one of them is.
IoRequest DriveLoad::next_request(Lane& lane) {
  Block& block = *lane.idle.back();
  lane.idle.pop_back();
  const std::uint64_t number = lane.num_submitted++;
  const bool mixed = shape_.pattern == NvmePattern::mixed;
  const bool read = mixed ? number % 2 == 0 : shape_.pattern == NvmePattern::read;
  const std::uint64_t index = mixed ? number / 2 : number;
  const std::uint64_t num_blocks = lane.of.file_bytes / shape_.block_bytes;
  block.submitted_ns = now_ns();
  return {.op = read ? IoOp::read : IoOp::write,
          .file = read ? lane.of.source : lane.of.target,
          .offset = index % num_blocks * shape_.block_bytes,
          .data = block.memory,
          .bytes = shape_.block_bytes,
          .completion = &block};
}

void DriveLoad::finish(Block& block, const IoResult& result) {
  const std::int64_t now = now_ns();
  // Notifies under the lock: a drained load may be gone as soon as it is released.
  const std::lock_guard lock(mutex_);
  last_ns_ = now;
  block.lane.bytes += result.bytes;
  block.lane.idle.push_back(&block);
  --num_in_flight_;
  if (shape_.ahead == BlocksAhead::none)
    latencies_us_.push_back(static_cast<double>(now - block.submitted_ns) * 1e-3);
  if (!result.ok() && failure_.empty()) failure_ = result.message;
  if (block.lane.idle.size() < block.lane.wake_at && num_in_flight_ > 0 && failure_.empty()) return;
  has_news_ = true;
  news_.notify_one();
}

void DriveLoad::drain() {
  std::unique_lock lock(mutex_);
  news_.wait(lock, [&] { return num_in_flight_ == 0; });
  has_news_ = false;
}

LoadState DriveLoad::state() const {
  const std::lock_guard lock(mutex_);
  LoadState state{.seconds = seconds(now_ns() - start_ns_), .lane_bytes = {}};
  for (const auto& lane : lanes_) state.lane_bytes.push_back(lane->bytes);
  return state;
}

}  // namespace strata
