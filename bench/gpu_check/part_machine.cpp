#include <fmt/format.h>

#include "gpu_check/parts.hpp"

namespace strata {
namespace {

constexpr double doctor_seconds = 60, smi_seconds = 20;
const std::vector<std::string> machine_names{"machine"}, driver_names{"driver"};

// What doctor has CUDA say: "...; device 0: NVIDIA H200 at ..., compute 9.0 ...", or why there is
// none, as the row of the machine tells.
void note_gpu(MachineFacts& facts, const std::string& cuda, bool hidden) {
  const std::string mark = "; device ";
  const std::size_t found = cuda.find(mark);
  if (found != std::string::npos) {
    facts.gpu = cuda.substr(found + 2);
    return;
  }
  facts.why_no_gpu = hidden ? "a dry run" : "CUDA finds no device";
}

std::vector<CheckRow> look_at_machine(Check& check) {
  const auto file = check.scratch("doctor.json");
  const ProgramEnd end =
      check.run("strata", {"doctor", "--path", check.options().work.string(), "--json", file},
                doctor_seconds);
  // Exit code 1 tells of something broken: a fact like others.
  if (end.how != ProgramEnd::How::exited || end.code > 1)
    return {failed("machine", complaint(end), end.output_tail)};
  const CheckJson doctor = CheckJson::parse(read_file(file));
  CheckJson figures = CheckJson::object();
  std::string broken, cuda = "the build has no CUDA";
  for (const CheckJson& finding : doctor.at("findings")) {
    const std::string topic = finding.at("topic"), said = finding.at("facts");
    figures[topic] = finding;
    if (topic == "CUDA") cuda = said;
    if (finding.at("health") == "broken") broken += fmt::format("; {} is broken: {}", topic, said);
  }
  note_gpu(check.facts, cuda, check.options().hides_gpus);
  const auto told = [&](const char* topic) {
    return figures.contains(topic) ? figures[topic].at("facts").get<std::string>() : "?";
  };
  return {passed("machine",
                 fmt::format("{}; {}; CUDA {}{}", told("cores"), told("memory"), cuda, broken),
                 figures)};
}

std::vector<CheckRow> ask_driver(Check& check) {
  const ProgramEnd end = check.run_foreign(
      {"nvidia-smi",
       "--query-gpu=name,driver_version,memory.total,pcie.link.gen.max,pcie.link.width.max,"
       "clocks.max.sm,power.limit",
       "--format=csv,noheader"},
      smi_seconds);
  if (end.how == ProgramEnd::How::not_started) return none_run(driver_names, "no nvidia-smi");
  if (!end.succeeded()) return {failed("driver", complaint(end), end.output_tail)};
  return {passed("driver", end.output_tail, {{"nvidia_smi", end.output_tail}})};
}

}  // namespace

void check_machine(Check& check) {
  check.facts.why_no_gpu = "strata doctor does not tell of a GPU";
  check.run_part(machine_names, look_at_machine);
  check.run_part(driver_names, ask_driver);
}

}  // namespace strata
