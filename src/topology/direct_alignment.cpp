#include "topology/direct_alignment.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

namespace strata {
namespace {

namespace fs = std::filesystem;

std::optional<std::uint64_t> reported(int directory, const char* path, int flags) {
  struct statx facts = {};
  if (::statx(directory, path, flags, STATX_DIOALIGN, &facts) != 0) return std::nullopt;
  if ((facts.stx_mask & STATX_DIOALIGN) == 0) return std::nullopt;
  return std::max<std::uint64_t>(facts.stx_dio_offset_align, facts.stx_dio_mem_align);
}

bool refuses_direct(int descriptor) {
  return ::fcntl(descriptor, F_SETFL, O_DIRECT) != 0 && errno == EINVAL;
}

struct NewFile {
  std::optional<std::uint64_t> alignment;
  bool is_made = false;
};

// A file that never has a name and is gone when closed: what a new file will be like, seen without
// making one.
NewFile ask_a_new_file(const std::string& directory) {
  const int descriptor = ::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (descriptor < 0) return {};
  NewFile file{reported(descriptor, "", AT_EMPTY_PATH), true};
  if (!file.alignment && refuses_direct(descriptor)) file.alignment = 0;
  ::close(descriptor);
  return file;
}

// Where nothing may be made (no permission, or no O_TMPFILE): the first file that is there.
std::optional<std::uint64_t> ask_an_old_file(const std::string& directory) {
  std::error_code failed;
  for (fs::directory_iterator entry(directory, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    std::error_code ignored;
    if (!fs::is_regular_file(entry->symlink_status(ignored))) continue;
    return reported(AT_FDCWD, entry->path().c_str(), AT_SYMLINK_NOFOLLOW);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::uint64_t> direct_alignment_in(const std::string& directory) {
  const NewFile file = ask_a_new_file(directory);
  return file.is_made ? file.alignment : ask_an_old_file(directory);
}

}  // namespace strata
