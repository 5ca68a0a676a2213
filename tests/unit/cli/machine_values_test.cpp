#include "src/cli/machine_values.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "strata/cli/machine_file.hpp"
#include "strata/measure/machine_bench.hpp"
#include "support/source_dir.hpp"

namespace strata {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

MachineProfile shipped() {
  return read_machine_file(source_dir() / "configs/machines/8xH100-80-1TB.yaml");
}

MachineProfile measured_machine() {
  return bench_machine({.command = "a test",
                        .date = "2026-01-02",
                        .num_threads = 1,
                        .ranks = 2,
                        .repeats = 1,
                        .gpu_limit = 64 << 20,
                        .widths = {64},
                        .tokens = 16,
                        .attention_tokens = 32,
                        .parameters = 8192,
                        .array_bytes = 1 << 20});
}

TEST(MachineValues, OfAMeasuredMachineArePositiveAndReadBack) {
  const MachineProfile machine = measured_machine();
  const MachineProfile again = parse_machine_file(machine_file_text(machine), "written");
  EXPECT_EQ(machine_file_text(again), machine_file_text(machine));
  EXPECT_EQ(again.sources, machine.sources);
  const std::vector<MachineValue> values = machine_values(machine);
  const std::vector<MachineValue> read_back = machine_values(again);
  ASSERT_EQ(values.size(), read_back.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_TRUE(std::isfinite(values[i].value) && values[i].value > 0) << values[i].key;
    EXPECT_EQ(values[i].value, read_back[i].value) << values[i].key;
    EXPECT_THAT(values[i].source, HasSubstr("measured 2026-01-02 by a test")) << values[i].key;
  }
}

TEST(MachineValues, AreShownAsATable) {
  const std::string table = machine_table(shipped());
  EXPECT_THAT(table, AllOf(HasSubstr("8xH100-80, 1 TB, 8 ranks"), HasSubstr("54.8 GB/s"),
                           HasSubstr("drives[7].read_bytes_per_s"), HasSubstr("613.2 TFLOP/s")));
}

TEST(MachineValues, AreWrittenForPrograms) {
  const auto document = nlohmann::json::parse(machine_json(shipped()));
  EXPECT_EQ(document.at("format"), "strata-machine");
  EXPECT_EQ(document.at("ranks"), 8);
  const auto& up = document.at("values").at("link.up_bytes_per_s");
  EXPECT_EQ(up.at("value"), 54.8e9);
  EXPECT_THAT(up.at("source"), HasSubstr("Voltage Park"));
}

}  // namespace
}  // namespace strata
