#include "verified_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "io/common/posix_file.hpp"
#include "io/store/aligned_memory.hpp"
#include "io/store/checksum.hpp"
#include "strata/checkpoint/hf_folder.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

[[noreturn]] void refuse(const std::string& damage) {
  throw Error(
      "what was exported does not come back from the drive as it was written, so it is "
      "removed: " +
      damage);
}

// The bytes of a file from its beginning on, as its drive has them.
class DriveBytes {
 public:
  explicit DriveBytes(const std::filesystem::path& path)
      : file_(path.string(), OpenMode::read_only, Caching::direct),
        memory_(huge_page_bytes, export_read_back_bytes, "reading an export back") {
    // Where there are no direct reads the page cache is asked to forget what it has.
    if (!file_.info().direct) ::posix_fadvise(file_.descriptor(), 0, 0, POSIX_FADV_DONTNEED);
  }

  std::uint64_t size() const { return file_.size(); }
  // The next ones, at most so many and at least one. There must be one.
  std::span<const std::byte> next(std::uint64_t bytes_max) {
    if (unread_.empty()) refill();
    const auto bytes = unread_.first(std::min<std::uint64_t>(unread_.size(), bytes_max));
    unread_ = unread_.subspan(bytes.size());
    return bytes;
  }

 private:
  void refill() {
    const std::uint64_t bytes = usable(read());
    if (bytes == 0) refuse(fmt::format("{} cannot be read beyond byte {}", file_.path(), at_));
    at_ += bytes;
    unread_ = memory_.span().first(bytes);
  }
  std::uint64_t read() {
    const auto target = memory_.span();
    ssize_t got = -1;
    do {
      got = ::pread(file_.descriptor(), target.data(), target.size(), static_cast<off_t>(at_));
    } while (got < 0 && errno == EINTR);
    return static_cast<std::uint64_t>(
        check(got, "read back", fmt::format("{} at byte {}", file_.path(), at_)));
  }
  // No direct read begins where a short one may have ended.
  std::uint64_t usable(std::uint64_t got) const {
    return at_ + got == size() ? got : got - got % file_.alignment();
  }

  const PosixFile file_;
  const AlignedMemory memory_;
  std::uint64_t at_ = 0;
  std::span<const std::byte> unread_;
};

std::uint64_t checksum_of_next(DriveBytes& bytes, std::uint64_t count) {
  RunningChecksum sum;
  while (count > 0) {
    const auto piece = bytes.next(count);
    sum.add(piece);
    count -= piece.size();
  }
  return sum.value();
}

}  // namespace

VerifiedFile::VerifiedFile(const std::filesystem::path& path) : file_(PlainFile::create(path)) {}

void VerifiedFile::write(std::uint64_t offset, std::span<const std::byte> bytes,
                         std::string_view what) {
  if (bytes.empty()) return;
  file_.write(offset, bytes);
  parts_.push_back({offset, bytes.size(), checksum(bytes), std::string(what)});
}

void VerifiedFile::finish() {
  file_.sync_and_close();
  read_back();
}

void VerifiedFile::read_back() {
  std::ranges::sort(parts_, {}, &Part::offset);
  DriveBytes bytes(path());
  const std::uint64_t size = parts_.empty() ? 0 : parts_.back().offset + parts_.back().bytes;
  if (bytes.size() != size)
    refuse(fmt::format("{} has {} bytes, {} were written", path().string(), bytes.size(), size));
  std::uint64_t end = 0;
  for (const Part& part : parts_) {
    ensure(part.offset == end);
    const std::uint64_t found = checksum_of_next(bytes, part.bytes);
    if (found != part.checksum)
      refuse(
          fmt::format("{} bytes of {} at offset {} of {} are damaged: their checksum is "
                      "{:016x}, when written it was {:016x}",
                      part.bytes, part.what, part.offset, path().string(), found, part.checksum));
    end += part.bytes;
  }
}

void write_verified_text(const std::filesystem::path& path, const std::string& text) {
  VerifiedFile file(path);
  file.write(0, std::as_bytes(std::span(text)), "text");
  file.finish();
}

}  // namespace strata
