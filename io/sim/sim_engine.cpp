// The `sim` engine: one thread plays the kernel. Pieces enter a window, get a latency from the
// seed, and end in the order of their due times; what happens to each is drawn from the same seed.

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "io/common/request_board.hpp"
#include "io/common/stall_watch.hpp"
#include "io/sim/sim_disk.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"
#include "strata/core/philox.hpp"

namespace strata {
namespace {

constexpr std::uint64_t engine_stream = 1ull << 63;  // of random numbers; files have 0, 1, 2 ...

class SimFile : public OpenFile {
 public:
  SimFile(const std::string& path, OpenMode mode, std::uint64_t alignment, SimDisk& disk)
      : OpenFile(path, mode), alignment_(alignment), disk_(disk), inode_(disk.open(path, mode)) {}

  SimInode& inode() const { return *inode_; }
  std::uint64_t alignment() const override { return alignment_; }
  std::uint64_t size() const override { return disk_.size(*inode_); }
  std::uint64_t bytes_free() const override { return disk_.bytes_free(); }
  FileInfo info() const override {
    return {.path = path(),
            .bytes = size(),
            .allocated_bytes = size(),
            .alignment = alignment_,
            .direct = alignment_ > 1,
            .note = "simulated"};
  }
  void sync() override {
    if (const int error_number = disk_.sync(*inode_))
      throw SystemError("flush", path(), error_number);
  }
  void preallocate(std::uint64_t bytes) override {
    const int error_number = bytes == 0 ? 0 : disk_.grow(*inode_, bytes);
    if (error_number == 0) return;
    throw SystemError(fmt::format("reserve {} ({} bytes; {} free on the simulated disk) for",
                                  format_bytes(bytes), bytes, format_bytes(bytes_free())),
                      path(), error_number);
  }

 private:
  const std::uint64_t alignment_;
  SimDisk& disk_;
  const std::shared_ptr<SimInode> inode_;
};

class SimulatedEngine : public SimEngine {
 public:
  explicit SimulatedEngine(const SimOptions& options);
  ~SimulatedEngine() override;

  std::string_view name() const override { return "sim"; }
  FileId open(const std::string& path, OpenMode mode, Caching caching) override;
  FileInfo info(FileId file) const override { return board_.file(file)->info(); }
  void preallocate(FileId file, std::uint64_t bytes) override {
    board_.file(file)->preallocate(bytes);
  }
  void sync(FileId file) override { board_.file(file)->sync(); }
  void close(FileId file) override { board_.remove_file(file); }
  void register_memory(std::span<std::byte>) override {}
  void submit(std::span<const IoRequest> requests) override { board_.submit(requests); }
  std::size_t cancel(const IoCompletion& completion) override { return board_.cancel(completion); }
  void drain() override { board_.drain(); }
  FileSystem& file_system() override { return disk_; }
  std::string describe() const override;
  void cut_power() override;
  void power_fails_at(std::uint64_t change) override;
  std::uint64_t changes() const override { return disk_.changes(); }

 private:
  static constexpr std::size_t window = 16;
  struct InFlight {
    Piece piece;
    std::int64_t due_us = 0;
    std::uint64_t order = 0;  // among equals
  };

  void run();
  bool fill();
  void schedule(Piece piece);
  InFlight next_due();
  void wait_until(std::int64_t due_us);
  void perform(InFlight due);
  std::int64_t attempt(const Piece& piece);
  std::uint64_t bytes_of_attempt(const Piece& piece, const SimFault* fault);
  const SimFault* fault_at(std::uint64_t operation) const;

  const SimOptions options_;
  SimDisk disk_;
  RequestBoard board_;
  StallWatch watch_;
  // The engine's thread only.
  PhiloxStream random_;
  std::vector<InFlight> in_flight_;
  std::int64_t clock_us_ = 0;
  std::uint64_t operations_ = 0;
  std::jthread thread_;
};

SimulatedEngine::SimulatedEngine(const SimOptions& options)
    : options_(options),
      disk_(options),
      board_(options.chunk_bytes),
      watch_(options.on_stall, options.stall_seconds),
      random_(options.seed, engine_stream),
      thread_([this] { run(); }) {
  watch_.add(board_);
}

SimulatedEngine::~SimulatedEngine() {
  board_.drain();
  board_.stop();
}

FileId SimulatedEngine::open(const std::string& path, OpenMode mode, Caching caching) {
  const std::uint64_t alignment = caching == Caching::direct ? options_.alignment : 1;
  return board_.add_file(std::make_shared<SimFile>(path, mode, alignment, disk_));
}

std::string SimulatedEngine::describe() const {
  return fmt::format(
      "sim: seed {}, pieces of {}, latency up to {} us, {} faults; bytes live in memory",
      options_.seed, format_bytes(options_.chunk_bytes), options_.latency_us_max,
      options_.faults.size());
}

void SimulatedEngine::cut_power() {
  board_.drain();
  disk_.cut_power();
}

void SimulatedEngine::power_fails_at(std::uint64_t change) {
  board_.drain();
  disk_.power_fails_at(change);
}

void SimulatedEngine::run() {
  in_flight_.reserve(window);
  while (fill()) {
    InFlight due = next_due();
    wait_until(due.due_us);
    perform(std::move(due));
  }
}

bool SimulatedEngine::fill() {
  auto piece = in_flight_.empty() ? board_.wait_and_take() : board_.take();
  while (piece) {
    schedule(std::move(*piece));
    piece = in_flight_.size() < window ? board_.take() : std::nullopt;
  }
  return !in_flight_.empty();
}

void SimulatedEngine::schedule(Piece piece) {
  const auto latency = random_.next_below(
      static_cast<std::uint64_t>(std::max<std::int64_t>(options_.latency_us_max, 0)) + 1);
  in_flight_.push_back(
      {std::move(piece), clock_us_ + static_cast<std::int64_t>(latency), random_.next_u64()});
}

SimulatedEngine::InFlight SimulatedEngine::next_due() {
  const auto first = std::ranges::min_element(
      in_flight_, {}, [](const InFlight& entry) { return std::pair(entry.due_us, entry.order); });
  InFlight due = std::move(*first);
  in_flight_.erase(first);
  return due;
}

void SimulatedEngine::wait_until(std::int64_t due_us) {
  if (due_us > clock_us_)
    std::this_thread::sleep_for(std::chrono::microseconds(due_us - clock_us_));
  clock_us_ = std::max(clock_us_, due_us);
}

void SimulatedEngine::perform(InFlight due) {
  if (advance(due.piece, attempt(due.piece)) == PieceStep::finished)
    return board_.finish(due.piece);
  back_off(due.piece);
  schedule(std::move(due.piece));
}

std::int64_t SimulatedEngine::attempt(const Piece& piece) {
  const SimFault* fault = fault_at(operations_++);
  if (fault != nullptr && fault->error_number != 0) return -fault->error_number;
  if (random_.next_uniform() < options_.again_probability) return -EAGAIN;
  const std::uint64_t bytes = bytes_of_attempt(piece, fault);
  const std::span<std::byte> memory(piece.data(), bytes);
  SimInode& inode = static_cast<SimFile&>(piece.file()).inode();
  const auto result = piece.op() == IoOp::read ? disk_.read(inode, piece.offset(), memory)
                                               : disk_.write(inode, piece.offset(), memory);
  return result.error_number != 0 ? -result.error_number : static_cast<std::int64_t>(result.bytes);
}

std::uint64_t SimulatedEngine::bytes_of_attempt(const Piece& piece, const SimFault* fault) {
  if (piece.left() < 2) return piece.left();
  if (fault != nullptr) return piece.left() / 2;
  if (random_.next_uniform() >= options_.short_transfer_probability) return piece.left();
  return 1 + random_.next_below(piece.left() - 1);
}

const SimFault* SimulatedEngine::fault_at(std::uint64_t operation) const {
  const auto fault = std::ranges::find(options_.faults, operation, &SimFault::at_operation);
  return fault == options_.faults.end() ? nullptr : &*fault;
}

}  // namespace

std::unique_ptr<SimEngine> make_sim_engine(const SimOptions& options) {
  return std::make_unique<SimulatedEngine>(options);
}

}  // namespace strata
