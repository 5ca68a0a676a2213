#include "metrics_cut.hpp"

#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "strata/core/error.hpp"

namespace strata {
namespace {

bool stays(const std::string& line, std::int64_t step) {
  const auto object = nlohmann::json::parse(line, nullptr, false);
  if (!object.is_object()) return false;
  const auto found = object.find("step");
  return found == object.end() || !found->is_number_integer() || found->get<std::int64_t>() <= step;
}

}  // namespace

void cut_metrics(const std::filesystem::path& metrics, std::int64_t step) {
  std::ifstream before(metrics);
  if (!before) return;
  std::filesystem::path cut = metrics;
  cut += ".cut";
  std::ofstream after(cut, std::ios::trunc);
  for (std::string line; std::getline(before, line);)
    if (stays(line, step)) after << line << '\n';
  after.close();
  if (!after) throw SystemError("write", cut.string(), errno);
  std::error_code failed;
  std::filesystem::rename(cut, metrics, failed);
  if (failed) throw SystemError("replace", metrics.string(), failed.value());
}

}  // namespace strata
