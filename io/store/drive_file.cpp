#include "io/store/drive_file.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "io/store/drive_check.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"
#include "strata/core/philox.hpp"

namespace strata {
namespace {

constexpr std::uint64_t alignment_min = 4096;
constexpr std::uint64_t probe_bytes_max = 1 * MiB;

using AlignedBytes = std::unique_ptr<std::byte[], decltype(&std::free)>;
AlignedBytes aligned_bytes(std::uint64_t alignment, std::uint64_t bytes) {
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(alignment, align_up(bytes, alignment)));
  if (memory == nullptr) throw OutOfMemory("the drive probe", bytes, 0);
  return {memory, &std::free};
}

void fill_pattern(std::byte* memory, std::uint64_t bytes) {
  PhiloxStream random(static_cast<std::uint64_t>(::getpid()), 0);
  for (std::uint64_t at = 0; at + 8 <= bytes; at += 8) {
    const std::uint64_t word = random.next_u64();
    std::memcpy(memory + at, &word, 8);
  }
}

bool simulated(const IoEngine& engine) { return engine.name() == "sim"; }

bool exists(IoEngine& engine, const std::string& path) {
  try {
    engine.close(engine.open(path, OpenMode::read_only, Caching::direct));
    return true;
  } catch (const SystemError&) {
    return false;
  }
}

// A simulated disk is reached through its engine only, and nobody else's files are on it.
std::string free_simulated_path(IoEngine& engine, const std::string& directory) {
  for (int number = 0;; ++number) {
    auto path = fmt::format("{}/strata-scratch-sim-{}.tiles", directory, number);
    if (!exists(engine, path)) return path;
  }
}

}  // namespace

DriveFile::DriveFile(IoEngine& engine, const DriveExtent& drive)
    : engine_(&engine), bytes_(drive.bytes) {
  if (!simulated(engine)) open_scratch(drive.directory);
  const auto path = scratch_ ? scratch_->path() : free_simulated_path(engine, drive.directory);
  id_ = engine.open(path, OpenMode::read_write_create, Caching::direct);
  try {
    alignment_ = std::max(engine.info(id_).alignment, alignment_min);
    reserve(drive.directory);
  } catch (...) {
    engine.close(id_);
    throw;
  }
}

void DriveFile::open_scratch(const std::string& directory) {
  check_drive_directory(directory);
  const DeadFiles reclaimed = reclaim_scratch_files(directory);
  if (reclaimed.num_files > 0) {
    note_ = fmt::format("; removed {} scratch files of dead runs ({})", reclaimed.num_files,
                        format_bytes(reclaimed.bytes));
  }
  check_drive_space(directory, bytes_);
  scratch_.emplace(directory);
}

void DriveFile::reserve(const std::string& directory) {
  try {
    engine_->preallocate(id_, bytes_);
  } catch (const SystemError& error) {
    if (error.error_number() != ENOSPC && error.error_number() != EFBIG) throw;
    throw ConfigError(
        fmt::format("offload.nvme_paths: {}: {}; {}", directory, error.what(), space_advice()));
  }
}

DriveFile::DriveFile(DriveFile&& other) noexcept
    : engine_(std::exchange(other.engine_, nullptr)),
      bytes_(other.bytes_),
      alignment_(other.alignment_),
      note_(std::move(other.note_)),
      scratch_(std::move(other.scratch_)),
      id_(other.id_) {}

DriveFile::~DriveFile() {
  if (engine_ != nullptr) engine_->close(id_);
}

void DriveFile::probe() {
  const std::uint64_t bytes = std::min(bytes_, probe_bytes_max) / alignment_ * alignment_;
  if (bytes == 0) return;
  const AlignedBytes written = aligned_bytes(alignment_, bytes);
  const AlignedBytes read = aligned_bytes(alignment_, bytes);
  fill_pattern(written.get(), bytes);
  transfer(*engine_, {.op = IoOp::write, .file = id_, .data = written.get(), .bytes = bytes});
  transfer(*engine_, {.op = IoOp::read, .file = id_, .data = read.get(), .bytes = bytes});
  if (std::memcmp(written.get(), read.get(), bytes) == 0) return;
  throw Error(fmt::format(
      "{} does not give back what was written to it: the first {} differ; do not use this drive",
      engine_->info(id_).path, format_bytes(bytes)));
}

std::uint64_t DriveFile::allocated_bytes() const {
  if (!scratch_) return bytes_;
  struct stat status = {};
  check(::stat(scratch_->path().c_str(), &status), "read the size of", scratch_->path());
  return static_cast<std::uint64_t>(status.st_blocks) * 512;
}

std::string DriveFile::describe() const {
  const FileInfo info = engine_->info(id_);
  const std::string how = info.direct ? fmt::format("O_DIRECT, aligned to {}", info.alignment)
                                      : std::string("buffered");
  const std::string note = info.note.empty() ? "" : " (" + info.note + ")";
  return fmt::format("{}: {}, {}{}{}", info.path, format_bytes(bytes_), how, note, note_);
}

}  // namespace strata
