#include "io/store/store_part.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <utility>

#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

std::unique_ptr<FileLock> lock_or_nothing(FileSystem& files, const std::string& path) {
  try {
    return try_lock_part(files, path);
  } catch (const SystemError& error) {
    if (error.error_number() == ENOENT) return nullptr;
    throw;
  }
}

void check_is_there(const FileSystem& files, const std::string& path) {
  if (!files.exists(path))
    throw FormatError(fmt::format("{} is missing: a part of the store is damaged", path));
}

}  // namespace

StorePart::StorePart(IoEngine& engine, std::string path, std::unique_ptr<FileLock> lock, bool keep)
    : engine_(&engine), path_(std::move(path)), lock_(std::move(lock)), keep_(keep) {}

std::optional<StorePart> StorePart::make(IoEngine& engine, const std::string& path,
                                         StoreKind kind) {
  engine.file_system().make_directory(path);
  auto lock = lock_or_nothing(engine.file_system(), path);
  if (lock == nullptr) return std::nullopt;
  StorePart part(engine, path, std::move(lock), false);
  if (kind == StoreKind::versioned) part.mark_as_unfinished();
  part.open_tiles();
  return part;
}

void StorePart::mark_as_unfinished() {
  engine_->file_system().write_file(file(PartFiles::unfinished), {});
  engine_->file_system().sync_directory(path_);
}

void StorePart::open_tiles() {
  tiles_ = engine_->open(file(PartFiles::tiles), OpenMode::read_write_create, Caching::direct);
}

StorePart StorePart::open(IoEngine& engine, const std::string& path) {
  FileSystem& files = engine.file_system();
  auto lock = try_lock_part(files, path);
  if (lock == nullptr)
    throw ConfigError(fmt::format("the store {} is in use by another run; wait for its end", path));
  StorePart part(engine, path, std::move(lock), true);
  check_is_there(files, part.file(PartFiles::tiles));
  part.open_tiles();
  return part;
}

StorePart::StorePart(StorePart&& other) noexcept
    : engine_(std::exchange(other.engine_, nullptr)),
      path_(std::move(other.path_)),
      note_(std::move(other.note_)),
      lock_(std::move(other.lock_)),
      tiles_(other.tiles_),
      keep_(other.keep_) {}

StorePart::~StorePart() {
  if (engine_ == nullptr) return;
  if (tiles_.valid()) engine_->close(tiles_);
  if (!keep_) remove_part(engine_->file_system(), path_);
}

std::string StorePart::describe(std::uint64_t bytes) const {
  const FileInfo info = engine_->info(tiles_);
  const std::string how = info.direct ? fmt::format("O_DIRECT, aligned to {}", info.alignment)
                                      : std::string("buffered");
  const std::string note = info.note.empty() ? "" : " (" + info.note + ")";
  return fmt::format("{}: {}, {}{}{}", info.path, format_bytes(bytes), how, note, note_);
}

void replace_file(FileSystem& files, const std::string& path, const std::string& aside,
                  std::span<const std::byte> bytes) {
  files.write_file(aside, bytes);
  files.rename(aside, path);
}

}  // namespace strata
