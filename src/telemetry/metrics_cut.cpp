#include "metrics_cut.hpp"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "metrics_json.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

using PlainJson = nlohmann::json;

bool stays(const PlainJson& object, std::int64_t step) {
  if (!object.is_object()) return false;
  const auto found = object.find("step");
  return found == object.end() || !found->is_number_integer() || found->get<std::int64_t>() <= step;
}

void take_largest(const PlainJson& object, const char* key, std::uint64_t& bytes) {
  if (!object.is_object()) return;
  const auto found = object.find(key);
  if (found != object.end() && found->is_number_unsigned())
    bytes = std::max(bytes, found->get<std::uint64_t>());
}

}  // namespace

WrittenBytes cut_metrics(const std::filesystem::path& metrics, std::int64_t step) {
  std::ifstream before(metrics);
  if (!before) return {};
  std::filesystem::path cut = metrics;
  cut += ".cut";
  std::ofstream after(cut, std::ios::trunc);
  WrittenBytes written;
  for (std::string line; std::getline(before, line);) {
    const PlainJson object = PlainJson::parse(line, nullptr, false);
    take_largest(object, nvme_written_key, written.nvme);
    take_largest(object, checkpoints_written_key, written.checkpoints);
    if (stays(object, step)) after << line << '\n';
  }
  after.close();
  if (!after) throw SystemError("write", cut.string(), errno);
  std::error_code failed;
  std::filesystem::rename(cut, metrics, failed);
  if (failed) throw SystemError("replace", metrics.string(), failed.value());
  return written;
}

}  // namespace strata
