#include "strata/topology/process_memory.hpp"

#include "topology/system_files.hpp"

namespace strata {

// Not getrusage(), whose figure may be that of the program which started this one.
std::uint64_t most_resident_bytes() {
  return kib_field_of(read_system_file("/proc/self/status"), "VmHWM:");
}

}  // namespace strata
