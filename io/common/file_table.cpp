#include "io/common/file_table.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <utility>

#include "strata/core/error.hpp"

namespace strata {
namespace {

// From the lowest bit: place, uses, queue.
constexpr int place_bits = 13, use_bits = 13;
static_assert(1 << place_bits == FileTable::files_max);
static_assert(FileTable::queues_max == 1 << (31 - place_bits - use_bits));

constexpr std::size_t place_of(FileId id) {
  return static_cast<std::size_t>(id.value & (FileTable::files_max - 1));
}

}  // namespace

FileTable::FileTable(int queue) : queue_(queue) { ensure(queue >= 0 && queue < queues_max); }

int FileTable::queue_of(FileId id) { return id.valid() ? id.value >> (place_bits + use_bits) : 0; }

FileId FileTable::id_of(std::size_t place) const {
  const std::int32_t uses = places_[place].uses & ((1 << use_bits) - 1);
  return FileId{queue_ << (place_bits + use_bits) | uses << place_bits |
                static_cast<std::int32_t>(place)};
}

FileId FileTable::add(std::shared_ptr<OpenFile> file) {
  if (free_.empty()) {
    if (places_.size() == files_max) {
      throw SystemError("open",
                        fmt::format("{}: {} files are open on its device", file->path(), files_max),
                        EMFILE);
    }
    free_.push_back(places_.size());
    places_.emplace_back();
  }
  const std::size_t place = free_.back();
  free_.pop_back();
  places_[place].file = std::move(file);
  return id_of(place);
}

const std::shared_ptr<OpenFile>* FileTable::find(FileId id) const {
  const std::size_t place = place_of(id);
  if (!id.valid() || place >= places_.size() || id != id_of(place)) return nullptr;
  return places_[place].file == nullptr ? nullptr : &places_[place].file;
}

void FileTable::remove(FileId id) {
  const std::size_t place = place_of(id);
  places_[place].file = nullptr;
  ++places_[place].uses;
  free_.push_back(place);
}

}  // namespace strata
