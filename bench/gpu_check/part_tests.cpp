#include <fmt/format.h>

#include "gpu_check/parts.hpp"
#include "gpu_check/test_report.hpp"

namespace strata {
namespace {

struct TimedGroup {
  TestGroup group;
  double seconds_max = 0;
};

// Its groups in the order in which they are run, each in a process of its own: what hangs or
// crashes costs one row.
struct TestProgram {
  std::string name;
  std::vector<TimedGroup> groups;
};

std::vector<TestGroup> groups_of(const TestProgram& program) {
  std::vector<TestGroup> groups;
  for (const TimedGroup& timed : program.groups) groups.push_back(timed.group);
  return groups;
}

std::vector<CheckRow> run_tests(Check& check, const TestProgram& program, const TimedGroup& timed) {
  const TestGroup& group = timed.group;
  if (!check.has_program(program.name))
    return {not_run(group.part, fmt::format("there is no {} beside strata", program.name))};
  const auto report = check.scratch(program.name + ".json");
  std::filesystem::remove(report);
  const ProgramEnd end = check.run(program.name,
                                   {"--gtest_output=json:" + report.string(), "--gtest_color=no",
                                    "--gtest_filter=" + gtest_filter(group, groups_of(program))},
                                   timed.seconds_max);
  // 1: a test failed, as the report tells.
  if (end.how != ProgramEnd::How::exited || end.code > 1)
    return {failed(group.part, complaint(end), end.output_tail)};
  return test_rows(read_file(report), check.last_output(), {group});
}

TestProgram host_program(const std::string& name) { return {name, {{{"host: " + name, {}}, 60}}}; }

TestProgram cuda_program() {
  return {"cuda_test",
          {{{"GPU = CPU Adam bits", {"Update", "Adam", "Optimizer"}}, 30},
           {{"kernel parity", {}}, 45},
           {{"attention, products, Llama", {"Attention", "Linear", "Llama"}}, 45},
           {{"device contract", {"DeviceContract", "Stream", "Event", "Slab"}}, 30},
           {{"training bits", {"Training"}}, 45}}};
}

std::vector<TestProgram> test_programs(Extent extent) {
  std::vector<TestProgram> programs{host_program("device_test"), host_program("memory_test")};
  if (extent == Extent::full) programs.push_back(host_program("kernels_test"));
  programs.push_back(cuda_program());
  return programs;
}

}  // namespace

void check_tests(Check& check) {
  for (const TestProgram& program : test_programs(check.options().extent))
    for (const TimedGroup& timed : program.groups)
      check.run_part({timed.group.part}, [&](Check& c) { return run_tests(c, program, timed); });
}

}  // namespace strata
