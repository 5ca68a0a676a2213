#include <fmt/format.h>

#include "gpu_check/parts.hpp"
#include "gpu_check/test_report.hpp"

namespace strata {
namespace {

struct TestProgram {
  std::string name;
  std::vector<TestGroup> groups;
  double seconds_max = 0;
};

std::vector<std::string> names_of(const TestProgram& program) {
  std::vector<std::string> names;
  for (const TestGroup& group : program.groups) names.push_back(group.part);
  return names;
}

std::vector<CheckRow> run_tests(Check& check, const TestProgram& program) {
  if (!check.has_program(program.name))
    return none_run(names_of(program), fmt::format("there is no {} beside strata", program.name));
  const auto report = check.scratch(program.name + ".json");
  const ProgramEnd end =
      check.run(program.name, {"--gtest_output=json:" + report.string(), "--gtest_color=no"},
                program.seconds_max);
  // 1: a test failed, as the report tells.
  if (end.how != ProgramEnd::How::exited || end.code > 1) {
    std::vector<CheckRow> rows;
    for (const std::string& name : names_of(program))
      rows.push_back(failed(name, complaint(end), end.output_tail));
    return rows;
  }
  return test_rows(read_file(report), check.last_output(), program.groups);
}

TestProgram host_program(const std::string& name) { return {name, {{"host: " + name, {}}}, 60}; }

std::vector<TestProgram> test_programs(Extent extent) {
  std::vector<TestProgram> programs{host_program("device_test"), host_program("memory_test")};
  if (extent == Extent::full) programs.push_back(host_program("kernels_test"));
  programs.push_back({"cuda_test",
                      {{"GPU = CPU Adam bits", {"Update", "Adam", "Optimizer"}},
                       {"training bits", {"DeviceTraining"}},
                       {"device contract", {"Device", "Stream", "Event", "Slab"}},
                       {"kernel parity", {}}},
                      120});
  return programs;
}

}  // namespace

void check_tests(Check& check) {
  for (const TestProgram& program : test_programs(check.options().extent))
    check.run_part(names_of(program), [&](Check& c) { return run_tests(c, program); });
}

}  // namespace strata
