#include "bench_rig.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <utility>

#include "new_file.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/clock.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

constexpr int num_threads_max = 64;
constexpr std::uint64_t memory_alignment = 64 * KiB;

// One request is one transfer: pieces as large as blocks.
IoOptions engine_options(const RigOptions& options) {
  return {.queue_depth = options.depth,
          .chunk_bytes = options.block_bytes,
          .num_threads = std::min(options.depth, num_threads_max)};
}

std::uint64_t share_bytes(std::uint64_t bytes, std::size_t num_shares) {
  const std::uint64_t share = bytes / num_shares;
  return num_shares == 1 ? share : share / memory_alignment * memory_alignment;
}

}  // namespace

BenchRig::BenchRig(const RigOptions& options, std::span<const BenchSite> sites,
                   std::span<std::byte> memory)
    : options_(options),
      sites_(sites),
      memory_(memory),
      engine_(make_io_engine(options.io_engine, engine_options(options))) {
  for (const BenchSite& site : sites) files_.push_back({open(site.source), open(site.target)});
  engine_->register_memory(memory_);
}

BenchRig::~BenchRig() { engine_->unregister_memory(memory_); }

FileId BenchRig::open(const std::string& path) {
  const FileId file = engine_->open(path, OpenMode::read_write_create, Caching::direct);
  const FileInfo info = engine_->info(file);
  if (!info.direct) {
    throw ConfigError(
        fmt::format("{}: {}; without O_DIRECT this would measure RAM and call it a drive: name a "
                    "directory on a file system that has it (ext4, xfs)",
                    path, info.note));
  }
  if (options_.block_bytes % info.alignment == 0) return file;
  throw ConfigError(
      fmt::format("a block of {} bytes is no multiple of the {} bytes that O_DIRECT "
                  "asks for on {}",
                  options_.block_bytes, info.alignment, path));
}

std::vector<LoadLane> BenchRig::lanes_of(std::span<const std::size_t> sites) const {
  const std::uint64_t share = share_bytes(memory_.size(), sites.size());
  std::vector<LoadLane> lanes;
  for (const std::size_t site : sites) {
    lanes.push_back({.source = source(site),
                     .target = target(site),
                     .file_bytes = options_.file_bytes,
                     .memory = memory_.subspan(lanes.size() * share, share)});
  }
  return lanes;
}

BenchRig::Measured BenchRig::measure(std::span<const std::size_t> sites, NvmePattern pattern,
                                     BlocksAhead ahead, double duration_s,
                                     const DriveLoad::Tick& tick) {
  const std::vector<LoadLane> lanes = lanes_of(sites);
  DriveLoad load(*engine_, lanes,
                 {.pattern = pattern,
                  .block_bytes = options_.block_bytes,
                  .depth = options_.depth,
                  .ahead = ahead});
  LoadSample sample = load.run(duration_s, tick);
  return {std::move(sample), load.depth()};
}

BenchRig::NewFiles BenchRig::write_new_files(std::span<const std::size_t> sites, double duration_s,
                                             const DriveLoad::Tick& tick) {
  std::vector<LoadLane> lanes = lanes_of(sites);
  std::vector<std::unique_ptr<NewFile>> files;
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    const std::string path = sites_[sites[i]].directory.file("new");
    files.push_back(std::make_unique<NewFile>(*engine_, path, options_.file_bytes));
    lanes[i].target = files[i]->id();
  }
  DriveLoad load(*engine_, lanes,
                 {.pattern = NvmePattern::write,
                  .block_bytes = options_.block_bytes,
                  .depth = options_.depth,
                  .at_end = AtFileEnd::stop});
  LoadSample written = load.run(duration_s, tick);
  return {std::move(written), sync_seconds(lanes)};
}

// At once: no drive waits for another's flush.
double BenchRig::sync_seconds(std::span<const LoadLane> lanes) {
  const std::int64_t begin = now_ns();
  std::vector<std::future<void>> syncs;
  for (const LoadLane& lane : lanes.subspan(1))
    syncs.push_back(
        std::async(std::launch::async, [this, file = lane.target] { engine_->sync(file); }));
  engine_->sync(lanes.front().target);
  for (std::future<void>& sync : syncs) sync.get();
  return seconds(now_ns() - begin);
}

}  // namespace strata
