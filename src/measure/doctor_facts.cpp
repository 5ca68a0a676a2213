#include "measure/doctor_facts.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "strata/core/error.hpp"
#include "strata/io/io_engine.hpp"
#include "strata/io/store/drive_owner.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;

// The topic says already what engine it is.
std::string without_name(const std::string& description) {
  const std::size_t colon = description.find(": ");
  return colon == std::string::npos ? description : description.substr(colon + 2);
}

UringTrial try_uring() {
  try {
    return {without_name(make_uring_engine({})->describe()), "", 0};
  } catch (const SystemError& error) {
    return {"", error.what(), error.error_number()};
  } catch (const Error& error) {
    return {"", error.what(), 0};
  }
}

DirectoryFacts look_at(const std::string& path, const std::string& examined) {
  DirectoryFacts facts{path, examined, "", 0, {}};
  try {
    facts.drive = read_drive_facts(examined);
  } catch (const Error& error) {
    facts.failure = error.what();
    return facts;
  }
  if (::access(examined.c_str(), W_OK | X_OK) != 0) facts.write_error = errno;
  return facts;
}

// A run makes its output directory: until then its parent tells.
std::string nearest_existing(const std::string& directory) {
  fs::path path = directory;
  std::error_code ignored;
  while (!path.empty() && path.has_relative_path() && !fs::exists(path, ignored))
    path = path.parent_path();
  return path.empty() ? "." : path.string();
}

void read_hardware(DoctorFacts& facts) {
  try {
    facts.topology = read_topology();
  } catch (const Error& error) {
    facts.topology_failure = error.what();
  }
  facts.host = read_host_facts();
  facts.gpus = read_gpus();
  facts.cuda = read_cuda_devices();
  facts.num_usable_gpus = static_cast<int>(facts.cuda.devices.size());
}

}  // namespace

DoctorFacts gather_facts(const DoctorOptions& options) {
  DoctorFacts facts;
  read_hardware(facts);
  facts.uring = try_uring();
  if (const char* value = std::getenv("OMP_NUM_THREADS")) facts.omp_num_threads = value;
  for (const std::string& path : options.paths) {
    facts.drives.push_back(look_at(path, path));
    facts.drives.back().user = drive_user(posix_file_system(), path);
  }
  if (!options.output_dir.empty())
    facts.output = look_at(options.output_dir, nearest_existing(options.output_dir));
  return facts;
}

}  // namespace strata
