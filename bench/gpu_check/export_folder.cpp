#include "gpu_check/export_folder.hpp"

#include <charconv>
#include <fstream>
#include <iterator>
#include <system_error>

namespace strata {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t exported_bytes = 2, state_bytes = 14;  // a parameter

std::uint64_t available_memory() {
  std::ifstream file("/proc/meminfo");
  return meminfo_bytes({std::istreambuf_iterator<char>(file), {}}, "MemAvailable");
}

bool has_room(const ModelShape& shape, const fs::path& memory) {
  std::error_code failed;
  const fs::space_info space = fs::space(memory, failed);
  const auto parameters = static_cast<std::uint64_t>(shape.num_parameters());
  return !failed && space.available > 2 * exported_bytes * parameters &&
         available_memory() > (state_bytes + 3 * exported_bytes) * parameters;
}

}  // namespace

std::uint64_t meminfo_bytes(const std::string& meminfo, const std::string& field) {
  const std::size_t found = meminfo.find(field + ":");
  if (found == std::string::npos) return 0;
  const std::size_t digit = meminfo.find_first_of("0123456789", found + field.size());
  if (digit == std::string::npos) return 0;
  std::uint64_t kib = 0;
  std::from_chars(meminfo.data() + digit, meminfo.data() + meminfo.size(), kib);
  return kib * 1024;
}

fs::path export_folder(const ModelShape& shape, const fs::path& memory, const fs::path& disk) {
  const fs::path folder =
      !memory.empty() && has_room(shape, memory) ? memory / shape.name : disk / "exports";
  fs::create_directories(folder);
  return folder;
}

}  // namespace strata
