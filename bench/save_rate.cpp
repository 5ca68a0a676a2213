// How fast a checkpoint is saved and verified, beside what the drive does by itself: raw writes and
// reads as `strata bench nvme` makes them, on the same engine, in the same directory, taking turns
// with the saves. A save is a rank's: tiles are copied into a few buffers and handed to the writer;
// it is whole when committed, so written, read back, verified, flushed and renamed. Prints a table
// of medians, lowest and highest, and ratios, each of one turn.
//
//   save_rate --path DIRECTORY [--size 2GB] [--repeats 7]

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "io/common/awaited_transfer.hpp"
#include "src/measure/bench_rig.hpp"
#include "src/measure/bench_site.hpp"
#include "src/measure/seeded_file.hpp"
#include "strata/checkpoint/state_checkpoint.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/clock.hpp"
#include "strata/core/error.hpp"
#include "strata/core/text_table.hpp"
#include "strata/device/device.hpp"
#include "strata/measure/samples.hpp"

namespace strata::bench {
namespace {

struct Options {
  std::string path, size = "2GB", tile = "16MiB", moments = "f32", engine = "auto";
  int depth = 32, buffers = 8, blocks = 24, repeats = 7;
  double raw_seconds = 0.7;
};

constexpr std::uint64_t raw_block_bytes = 4 * MiB, source_bytes = 256 * MiB;
constexpr std::int64_t step = 1;

DType dtype_of(const std::string& name) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::q8})
    if (dtype_name(dtype) == name) return dtype;
  throw ConfigError(fmt::format("--moments {}: f32, bf16 or q8", name));
}

// Master and both moments of blocks of one size, about `bytes` in all.
std::vector<StateVector> model_state(const Options& options) {
  const DType moments = dtype_of(options.moments);
  const std::int64_t chunk_bytes = storage_bytes(DType::f32, norm_chunk_elements) +
                                   2 * storage_bytes(moments, norm_chunk_elements);
  const auto chunks = static_cast<std::int64_t>(parse_bytes(options.size)) / chunk_bytes;
  const std::int64_t count = std::max<std::int64_t>(1, chunks / options.blocks) * 4096;
  std::vector<StateVector> vectors;
  for (int block = 0; block < options.blocks; ++block) {
    const std::string name = fmt::format("layers.{}", block);
    vectors.push_back({Role::master, name, DType::f32, count});
    vectors.push_back({Role::moment1, name, moments, count});
    vectors.push_back({Role::moment2, name, moments, count});
  }
  return vectors;
}

std::uint64_t bytes_of(const std::vector<StateVector>& vectors) {
  std::uint64_t bytes = 0;
  for (const StateVector& vector : vectors) bytes += state_vector_bytes(vector);
  return bytes;
}

// One of the buffers that tiles pass through.
struct SaveBuffer {
  explicit SaveBuffer(std::span<std::byte> its_memory) : memory(its_memory) {}

  std::span<std::byte> memory;
  AwaitedTransfer transfer;
  bool is_under_way = false;

  void wait() {
    if (is_under_way && !transfer.wait().ok()) throw Error("a write failed");
    is_under_way = false;
  }
};

// Memory as a plan's: on large pages, registered.
class SaveMemory {
 public:
  SaveMemory(IoEngine& engine, const Options& options)
      : engine_(engine),
        tile_bytes_(align_up(parse_bytes(options.tile), huge_page_bytes)),
        device_(make_host_device({})),
        slab_(device_->allocate_pinned(
            source_bytes + buffer_bytes() * static_cast<std::uint64_t>(options.buffers))) {
    fill_seeded(source(), 1, 0);
    engine_.register_memory(all());
    for (int i = 0; i < options.buffers; ++i)
      buffers_.push_back(std::make_unique<SaveBuffer>(all().subspan(
          source_bytes + static_cast<std::uint64_t>(i) * buffer_bytes(), buffer_bytes())));
  }
  ~SaveMemory() { engine_.unregister_memory(all()); }
  SaveMemory(const SaveMemory&) = delete;
  SaveMemory& operator=(const SaveMemory&) = delete;

  std::span<std::byte> all() const { return {slab_.data(), slab_.bytes()}; }
  std::span<std::byte> source() const { return all().first(source_bytes); }
  SaveBuffer& buffer(std::size_t turn) { return *buffers_[turn % buffers_.size()]; }
  void wait() {
    for (const auto& buffer : buffers_) buffer->wait();
  }

 private:
  static constexpr std::uint64_t huge_page_bytes = 2 * MiB;
  std::uint64_t buffer_bytes() const { return tile_bytes_ + huge_page_bytes; }

  IoEngine& engine_;
  const std::uint64_t tile_bytes_;
  std::unique_ptr<Device> device_;
  Slab slab_;
  std::vector<std::unique_ptr<SaveBuffer>> buffers_;
};

// Seconds of the parts of one save.
struct SaveTimes {
  double open = 0, write = 0, finish = 0, commit = 0;
  double written() const { return open + write; }
  double all() const { return open + write + finish + commit; }
};

class Saver {
 public:
  Saver(IoEngine& engine, std::string directory, const Options& options)
      : engine_(engine),
        directory_(std::move(directory)),
        vectors_(model_state(options)),
        tile_elements_(static_cast<std::int64_t>(parse_bytes(options.tile) / sizeof(float))),
        memory_(engine, options) {}

  std::uint64_t bytes() const { return bytes_of(vectors_); }

  SaveTimes save() {
    SaveTimes times;
    std::int64_t mark = now_ns();
    const auto lap = [&](double& part) {
      const std::int64_t now = now_ns();
      part = seconds(now - std::exchange(mark, now));
    };
    const auto writer = CheckpointWriter::open(engine_, directory_, step, vectors_, true);
    lap(times.open);
    for (std::size_t i = 0; i < vectors_.size(); ++i) write(*writer, static_cast<int>(i));
    memory_.wait();
    lap(times.write);
    const auto pieces = writer->finish();
    lap(times.finish);
    writer->commit(pieces, {.step = step});
    lap(times.commit);
    return times;
  }
  double verify_seconds() const {
    const std::int64_t begin = now_ns();
    const auto wrong = CheckpointReader::open(engine_, path())->verify();
    if (!wrong.empty()) throw Error(wrong.front());
    return seconds(now_ns() - begin);
  }
  void remove() { remove_checkpoint(engine_.file_system(), path()); }

 private:
  std::string path() const { return fmt::format("{}/checkpoint-{}", directory_, step); }

  void write(CheckpointWriter& writer, int index) {
    const StateVector& vector = vectors_[static_cast<std::size_t>(index)];
    for (std::int64_t first = 0; first < vector.count; first += tile_elements_) {
      const std::int64_t count = std::min(tile_elements_, vector.count - first);
      SaveBuffer& buffer = memory_.buffer(turn_++);
      buffer.wait();
      fill(buffer.memory,
           state_vector_offset(vector, first + count) - state_vector_offset(vector, first));
      buffer.is_under_way = true;
      writer.write(index, first, count, buffer.memory, buffer.transfer);
    }
  }
  // No two tiles of the same bytes.
  void fill(std::span<std::byte> target, std::uint64_t bytes) const {
    const auto source = memory_.source();
    const std::uint64_t from = turn_ * bytes % (source.size() - bytes);
    std::memcpy(target.data(), source.data() + from, bytes);
    std::memcpy(target.data(), &turn_, sizeof(turn_));
  }

  IoEngine& engine_;
  const std::string directory_;
  const std::vector<StateVector> vectors_;
  const std::int64_t tile_elements_;
  SaveMemory memory_;
  std::uint64_t turn_ = 0;
};

// Bytes per second into a file that was not there: what it costs the file system and the drive that
// the blocks are new, everybody pays who writes new files.
struct RawNewWrite {
  double written = 0;  // until the drive has taken it
  double durable = 0;  // until it is flushed, too
};

// What is measured of one turn, in the order of the columns.
struct Turn {
  double raw_write = 0, raw_read = 0;  // bytes per second
  RawNewWrite raw_new;
  double written = 0, saved = 0, verified = 0;
  SaveTimes times;
};

class Bench {
 public:
  explicit Bench(const Options& options)
      : options_(options),
        file_bytes_(align_up(parse_bytes(options.size), raw_block_bytes)),
        sites_(make_bench_sites({options.path}, 4 * file_bytes_)),
        device_(make_host_device({})),
        slab_(device_->allocate_pinned(source_bytes)),
        rig_({options.engine, raw_block_bytes, options.depth, file_bytes_}, sites_, memory()),
        saver_(rig_.engine(), sites_[0].directory.path(), options) {
    fill_seeded(memory(), 2, 0);
    // Blocks that were never written read as zeros without the drive, and first writes allocate.
    for (const FileId file : {rig_.source(0), rig_.target(0)}) {
      rig_.engine().preallocate(file, file_bytes_);
      write_seeded(rig_.engine(), {file, file_bytes_, 3}, memory(), [](std::uint64_t) {});
      rig_.engine().sync(file);
    }
  }

  void run() {
    fmt::print("{} in {}, {}\n", format_bytes(saver_.bytes()), options_.path,
               rig_.engine().describe());
    for (int i = 0; i < options_.repeats; ++i) turns_.push_back(turn());
    print();
  }

 private:
  static constexpr std::array<std::size_t, 1> site = {0};
  std::span<std::byte> memory() const { return {slab_.data(), slab_.bytes()}; }

  // Raw rates before and after the save: what the drive's rate did meanwhile, both share.
  Turn turn() {
    Turn turn;
    turn.raw_write = raw(NvmePattern::write);
    turn.raw_new = raw_new();
    turn.raw_read = raw(NvmePattern::read);
    turn.times = saver_.save();
    turn.raw_write = (turn.raw_write + raw(NvmePattern::write)) / 2;
    const RawNewWrite after = raw_new();
    turn.raw_new = {(turn.raw_new.written + after.written) / 2,
                    (turn.raw_new.durable + after.durable) / 2};
    const auto bytes = static_cast<double>(saver_.bytes());
    turn.written = bytes / turn.times.written();
    turn.saved = bytes / turn.times.all();
    turn.verified = bytes / saver_.verify_seconds();
    turn.raw_read = (turn.raw_read + raw(NvmePattern::read)) / 2;
    saver_.remove();
    return turn;
  }
  RawNewWrite raw_new() {
    const auto files = rig_.write_new_files(site, std::numeric_limits<double>::infinity(),
                                            [](const LoadState&) {});
    return {files.written.bytes_per_s(), files.bytes_per_s()};
  }
  double raw(NvmePattern pattern) {
    const auto measured = rig_.measure(site, pattern, BlocksAhead::queued, options_.raw_seconds,
                                       [](const LoadState&) {});
    if (pattern == NvmePattern::write) rig_.engine().sync(rig_.target(0));
    return measured.sample.bytes_per_s();
  }

  template <typename Value>
  void row(TextTable& table, const char* title, double unit, Value value) const {
    Samples samples;
    for (const Turn& turn : turns_) samples.values.push_back(value(turn) / unit);
    table.add_row({title, fmt::format("{:.3f}", samples.median()),
                   fmt::format("{:.3f}", samples.min()), fmt::format("{:.3f}", samples.max())});
  }

  void print() const {
    using Align = TextTable::Align;
    TextTable table(
        {{"what"}, {"median", Align::right}, {"lowest", Align::right}, {"highest", Align::right}});
    row(table, "raw write, GB/s", 1e9, [](const Turn& turn) { return turn.raw_write; });
    row(table, "raw write of a new file, GB/s", 1e9,
        [](const Turn& turn) { return turn.raw_new.written; });
    row(table, "raw write of a new file, flushed, GB/s", 1e9,
        [](const Turn& turn) { return turn.raw_new.durable; });
    row(table, "raw read, GB/s", 1e9, [](const Turn& turn) { return turn.raw_read; });
    row(table, "written, GB/s", 1e9, [](const Turn& turn) { return turn.written; });
    row(table, "whole save, GB/s", 1e9, [](const Turn& turn) { return turn.saved; });
    row(table, "verify, GB/s", 1e9, [](const Turn& turn) { return turn.verified; });
    row(table, "written / raw write", 1,
        [](const Turn& turn) { return turn.written / turn.raw_write; });
    row(table, "written / raw write of a new file", 1,
        [](const Turn& turn) { return turn.written / turn.raw_new.written; });
    row(table, "whole save / raw write", 1,
        [](const Turn& turn) { return turn.saved / turn.raw_write; });
    row(table, "whole save / raw write of a new file, flushed", 1,
        [](const Turn& turn) { return turn.saved / turn.raw_new.durable; });
    row(table, "whole save / that, then raw read", 1, [](const Turn& turn) {
      return turn.saved * (1 / turn.raw_new.durable + 1 / turn.raw_read);
    });
    row(table, "verify / raw read", 1,
        [](const Turn& turn) { return turn.verified / turn.raw_read; });
    row(table, "open, s", 1, [](const Turn& turn) { return turn.times.open; });
    row(table, "write, s", 1, [](const Turn& turn) { return turn.times.write; });
    row(table, "finish, s", 1, [](const Turn& turn) { return turn.times.finish; });
    row(table, "commit, s", 1, [](const Turn& turn) { return turn.times.commit; });
    fmt::print("{}", table.text());
  }

  const Options options_;
  const std::uint64_t file_bytes_;
  const std::vector<BenchSite> sites_;
  std::unique_ptr<Device> device_;
  Slab slab_;
  BenchRig rig_;
  Saver saver_;
  std::vector<Turn> turns_;
};

}  // namespace
}  // namespace strata::bench

int main(int argc, char** argv) {
  CLI::App app("How fast checkpoints are saved and verified, beside the drive's own rates");
  strata::bench::Options options;
  app.add_option("--path", options.path, "A directory on the drive")->required();
  app.add_option("--size", options.size, "Of the checkpoint, about");
  app.add_option("--tile", options.tile, "Of f32 state: what is written at once");
  app.add_option("--moments", options.moments, "f32, bf16 or q8");
  app.add_option("--buffers", options.buffers, "That tiles are on their way in")
      ->check(CLI::PositiveNumber);
  app.add_option("--blocks", options.blocks, "Of the model")->check(CLI::PositiveNumber);
  app.add_option("--engine", options.engine, "auto, uring or threads");
  app.add_option("--depth", options.depth, "Transfers in flight")->check(CLI::PositiveNumber);
  app.add_option("--repeats", options.repeats, "Turns")->check(CLI::PositiveNumber);
  app.add_option("--raw-seconds", options.raw_seconds, "Of each raw sample")
      ->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  try {
    strata::bench::Bench(options).run();
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "save_rate: {}\n", error.what());
    return 1;
  }
}
