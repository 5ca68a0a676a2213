#include "machine_text.hpp"

#include <sys/utsname.h>

#include <array>
#include <ctime>
#include <fstream>

namespace strata {

std::string kernel_text() {
  utsname system = {};
  return ::uname(&system) == 0 ? system.release : "";
}

std::string processor_text() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "";
}

std::string utc_now_text() {
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> text = {};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

}  // namespace strata
