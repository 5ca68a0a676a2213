#include "strata/cli/machine_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "strata/core/error.hpp"
#include "support/source_dir.hpp"

namespace strata {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* whole = R"(name: two boards
ranks: 2
accelerator:
  name: board
  memory_bytes: {value: 8 GB, source: the box}
  peak_flops_per_s: {value: 100 TFLOP/s, source: the box}
  memory_bytes_per_s: {value: 900 GB/s, source: "assumed: 0.9 of the box"}
  bf16:
    source: measured
    value:
      - {flops: 1 MFLOP, rate: 10 TFLOP/s}
      - {flops: 1 GFLOP, rate: 80 TFLOP/s}
  attention_efficiency: {value: 0.5, source: measured}
  seconds_per_call: {value: 5 us, source: assumed}
link:
  up_bytes_per_s: {value: 25 GB/s, source: measured}
  down_bytes_per_s: {value: 24 GB/s, source: measured}
host:
  memory_bytes: {value: 64 GiB, source: the box}
  cores: {value: 16, source: the box}
  memory_bytes_per_s: {value: 100 GB/s, source: measured}
  updates:
    bf16/f32/f32: {value: 2.5 Gparam/s, source: measured}
drives:
  - count: 2
    bytes: {value: 2 TB, source: the box}
    read_bytes_per_s: {value: 7 GB/s, source: measured}
    write_bytes_per_s: {value: 5 GB/s, source: measured}
    endurance_bytes: {value: 1200 TB, source: the box}
  - bytes: {value: 1 TB, source: another box}
    read_bytes_per_s: {value: 3 GB/s, source: measured}
    write_bytes_per_s: {value: 2 GB/s, source: measured}
    mixed_bytes_per_s: {value: 2.5 GB/s, source: measured}
    new_file_bytes_per_s: {value: 1.5 GB/s, source: measured too}
comm:
  gather_bytes_per_s: {value: 20 GB/s, source: assumed}
  reduce_bytes_per_s: {value: 18 GB/s, source: assumed}
)";

// `whole` with one line's text replaced.
std::string changed(const std::string& from, const std::string& to) {
  std::string text = whole;
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string machine_error_of(const std::string& yaml) {
  try {
    parse_machine_file(yaml, "node.yaml");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

void expect_alike(const MachineProfile& a, const MachineProfile& b) {
  // The text holds every field; what it leaves out is compared by itself.
  EXPECT_EQ(machine_file_text(a), machine_file_text(b));
  EXPECT_EQ(a.sources, b.sources);
  EXPECT_EQ(a.accelerator.memory_bytes, b.accelerator.memory_bytes);
  EXPECT_EQ(a.accelerator.bf16.size(), b.accelerator.bf16.size());
  EXPECT_EQ(a.drives.size(), b.drives.size());
  EXPECT_EQ(a.link.both_bytes_per_s, b.link.both_bytes_per_s);
  EXPECT_EQ(a.comm.gather_bytes_per_s, b.comm.gather_bytes_per_s);
}

TEST(MachineFile, ReadsEveryFieldWithItsSource) {
  const MachineProfile machine = parse_machine_file(whole, "node.yaml");
  EXPECT_EQ(machine.name, "two boards");
  EXPECT_EQ(machine.ranks, 2);
  EXPECT_EQ(machine.accelerator.name, "board");
  EXPECT_EQ(machine.accelerator.memory_bytes, 8'000'000'000u);
  EXPECT_EQ(machine.accelerator.peak_flops_per_s, 100e12);
  EXPECT_EQ(machine.accelerator.memory_bytes_per_s, 900e9);
  ASSERT_EQ(machine.accelerator.bf16.size(), 2u);
  EXPECT_EQ(machine.accelerator.bf16[1].flops, 1e9);
  EXPECT_EQ(machine.accelerator.bf16[1].flops_per_s, 80e12);
  EXPECT_TRUE(machine.accelerator.f32.empty());
  EXPECT_EQ(machine.accelerator.attention_efficiency, 0.5);
  EXPECT_EQ(machine.accelerator.seconds_per_call, 5e-6);
  EXPECT_EQ(machine.link.up_bytes_per_s, 25e9);
  EXPECT_EQ(machine.link.down_bytes_per_s, 24e9);
  EXPECT_EQ(machine.link.both_bytes_per_s, 0);
  EXPECT_EQ(machine.host.memory_bytes, 64ull << 30);
  EXPECT_EQ(machine.host.cores, 16);
  EXPECT_EQ(machine.host.memory_bytes_per_s, 100e9);
  EXPECT_EQ(machine.host.updates.at("bf16/f32/f32").params_per_s, 2.5e9);
  EXPECT_EQ(machine.comm.gather_bytes_per_s, 20e9);
  EXPECT_EQ(machine.comm.reduce_bytes_per_s, 18e9);
  EXPECT_EQ(machine.comm.seconds_per_call, 0);
  EXPECT_EQ(machine.sources.at("accelerator.memory_bytes_per_s"), "assumed: 0.9 of the box");
  EXPECT_EQ(machine.sources.at("accelerator.bf16"), "measured");
  EXPECT_EQ(machine.sources.at("host.updates.bf16/f32/f32"), "measured");
}

TEST(MachineFile, RepeatsADriveAsOftenAsItsCountSays) {
  const MachineProfile machine = parse_machine_file(whole, "node.yaml");
  ASSERT_EQ(machine.drives.size(), 3u);
  EXPECT_EQ(machine.drives[0].bytes, 2'000'000'000'000u);
  EXPECT_EQ(machine.drives[1].read_bytes_per_s, 7e9);
  EXPECT_EQ(machine.drives[1].endurance_bytes, 1200e12);
  EXPECT_EQ(machine.drives[1].mixed_bytes_per_s, 0);
  EXPECT_EQ(machine.drives[2].mixed_bytes_per_s, 2.5e9);
  EXPECT_EQ(machine.drives[1].new_file_bytes_per_s, 0);
  EXPECT_EQ(machine.drives[2].new_file_bytes_per_s, 1.5e9);
  EXPECT_EQ(machine.sources.at("drives[2].new_file_bytes_per_s"), "measured too");
  EXPECT_EQ(machine.sources.at("drives[1].bytes"), "the box");
  EXPECT_EQ(machine.sources.at("drives[2].bytes"), "another box");
}

TEST(MachineFile, ReadsBackWhatItWrote) {
  const MachineProfile machine = parse_machine_file(whole, "node.yaml");
  expect_alike(machine, parse_machine_file(machine_file_text(machine), "written"));
}

TEST(MachineFile, WritesDrivesTogetherThatAreAlikeInEveryRate) {
  MachineProfile machine = parse_machine_file(whole, "node.yaml");
  EXPECT_THAT(machine_file_text(machine), HasSubstr("- count: 2\n"));
  machine.drives[1].new_file_bytes_per_s = 1e9;
  const std::string text = machine_file_text(machine);
  EXPECT_THAT(text, ::testing::Not(HasSubstr("- count: 2\n")));
  const MachineProfile again = parse_machine_file(text, "written");
  ASSERT_EQ(again.drives.size(), 3u);
  EXPECT_EQ(again.drives[0].new_file_bytes_per_s, 0);
  EXPECT_EQ(again.drives[1].new_file_bytes_per_s, 1e9);
  EXPECT_EQ(again.drives[2].new_file_bytes_per_s, 1.5e9);
}

TEST(MachineFile, ReadsBackTextsThatYamlWouldTakeForSomethingElse) {
  MachineProfile machine = parse_machine_file(whole, "node.yaml");
  machine.name = "yes: \"#1\", {8 x 'é'}";
  machine.accelerator.name = "1e3";
  machine.sources["host.cores"] = "- [a, b] & c: d\\e";
  machine.link.up_bytes_per_s = 1e10 / 3;
  const MachineProfile again = parse_machine_file(machine_file_text(machine), "written");
  expect_alike(machine, again);
  EXPECT_EQ(again.name, machine.name);
  EXPECT_EQ(again.accelerator.name, "1e3");
  EXPECT_EQ(again.link.up_bytes_per_s, 1e10 / 3);
}

TEST(MachineFile, SaysSoWhereAValueHasNoSource) {
  MachineProfile machine = parse_machine_file(whole, "node.yaml");
  machine.sources.clear();
  const MachineProfile again = parse_machine_file(machine_file_text(machine), "written");
  EXPECT_EQ(again.sources.at("host.cores"), "not stated");
}

TEST(MachineFile, NeedsNoDrivesAndAloneNoCollectives) {
  std::string text = changed("ranks: 2", "ranks: 1");
  text = text.substr(0, text.find("drives:"));
  const MachineProfile machine = parse_machine_file(text, "node.yaml");
  EXPECT_TRUE(machine.drives.empty());
  EXPECT_EQ(machine.comm.gather_bytes_per_s, 0);
  expect_alike(machine, parse_machine_file(machine_file_text(machine), "written"));
}

TEST(MachineFile, NamesFileLineAndKeyOfABadValue) {
  EXPECT_THAT(machine_error_of(changed("25 GB/s", "fast")),
              HasSubstr("link.up_bytes_per_s in node.yaml line 16: 'fast' is not a rate"));
}

TEST(MachineFile, RefusesAnUnknownKeyWithTheNearestName) {
  EXPECT_THAT(machine_error_of(changed("down_bytes_per_s", "down_byte_per_s")),
              HasSubstr("link.down_bytes_per_s is missing"));
  EXPECT_THAT(machine_error_of(std::string(whole) + "hosts: {}\n"),
              HasSubstr("unknown key 'hosts' in node.yaml line 38: did you mean 'host'?"));
  EXPECT_THAT(machine_error_of(changed("seconds_per_call", "second_per_call")),
              HasSubstr("did you mean 'accelerator.seconds_per_call'?"));
  EXPECT_THAT(machine_error_of(changed("bf16/f32/f32", "bf16/f32/f16")), HasSubstr("did you mean"));
  EXPECT_THAT(machine_error_of(changed("count: 2", "number: 2")), HasSubstr("unknown key"));
}

TEST(MachineFile, RefusesAMissingKey) {
  for (const std::string key : {"ranks", "accelerator", "link", "host", "comm"})
    EXPECT_THAT(machine_error_of(changed("\n" + key + ":", "\nx-" + key + ":")),
                HasSubstr(": " + key + " is missing"));
  EXPECT_THAT(machine_error_of(changed("  cores: {value: 16, source: the box}\n", "")),
              HasSubstr("host.cores is missing"));
}

TEST(MachineFile, RefusesAValueWithoutItsSource) {
  EXPECT_THAT(machine_error_of(changed("{value: 25 GB/s, source: measured}", "{value: 25 GB/s}")),
              HasSubstr("link.up_bytes_per_s.source is missing"));
  EXPECT_THAT(machine_error_of(changed("{value: 25 GB/s, source: measured}", "25 GB/s")),
              HasSubstr("expected a table"));
  EXPECT_THAT(
      machine_error_of(changed("{value: 25 GB/s, source: measured}", "{value: 25 GB/s, source: }")),
      HasSubstr("is empty"));
}

TEST(MachineFile, RefusesRatesThatNoMachineHas) {
  EXPECT_THAT(machine_error_of(changed("25 GB/s", "0 GB/s")), HasSubstr("not above 0"));
  EXPECT_THAT(machine_error_of(changed("25 GB/s", "-25 GB/s")), HasSubstr("negative"));
  EXPECT_THAT(machine_error_of(changed("25 GB/s", "nan GB/s")), HasSubstr("not finite"));
  EXPECT_THAT(machine_error_of(changed("25 GB/s", ".inf")),
              HasSubstr("does not begin with a number"));
  EXPECT_THAT(machine_error_of(changed("25 GB/s", "1e30 GB/s")), HasSubstr("more than"));
  EXPECT_THAT(machine_error_of(changed("25 GB/s", "25")), HasSubstr("no unit"));
  EXPECT_THAT(machine_error_of(changed("8 GB", "1e30 GB")), HasSubstr("too large"));
  EXPECT_THAT(machine_error_of(changed("value: 0.5", "value: 0")), HasSubstr("not above 0"));
  EXPECT_THAT(machine_error_of(changed("value: 0.5", "value: 11")), HasSubstr("more than 10"));
  EXPECT_THAT(machine_error_of(changed("2.5 Gparam/s", "2.5 GB/s")), HasSubstr("unknown unit"));
  EXPECT_THAT(machine_error_of(changed("10 TFLOP/s", "0 TFLOP/s")), HasSubstr("not above 0"));
  EXPECT_THAT(machine_error_of(changed("1.5 GB/s", "0 GB/s")),
              AllOf(HasSubstr("drives[1].new_file_bytes_per_s in node.yaml line 34"),
                    HasSubstr("not above 0")));
  EXPECT_THAT(machine_error_of(changed("new_file_bytes", "new_files_bytes")),
              HasSubstr("did you mean 'drives[1].new_file_bytes_per_s'?"));
}

TEST(MachineFile, RefusesCountsThatNoMachineHas) {
  EXPECT_THAT(machine_error_of(changed("ranks: 2", "ranks: 0")), HasSubstr("integer >= 1"));
  EXPECT_THAT(machine_error_of(changed("ranks: 2", "ranks: 1e9")), HasSubstr("integer >= 1"));
  EXPECT_THAT(machine_error_of(changed("ranks: 2", "ranks: two")), HasSubstr("integer"));
  EXPECT_THAT(machine_error_of(changed("value: 16", "value: -1")), HasSubstr("integer"));
  EXPECT_THAT(machine_error_of(changed("count: 2", "count: 2000000")), HasSubstr("integer"));
  EXPECT_THAT(machine_error_of(changed("count: 2", "count: 1024")),
              HasSubstr("more than 1024 drives"));
}

TEST(MachineFile, RefusesOtherTypes) {
  EXPECT_THAT(machine_error_of(changed("value: 25 GB/s", "value: [25 GB/s]")),
              HasSubstr("one value"));
  EXPECT_THAT(machine_error_of(changed("name: two boards", "name: [a]")), HasSubstr("one value"));
  EXPECT_THAT(machine_error_of(changed("name: two boards", "name: \"\\x1b[2J\"")),
              HasSubstr("not printable"));
  EXPECT_THAT(machine_error_of("[1, 2]"), HasSubstr("node.yaml: expected a table"));
  EXPECT_THAT(machine_error_of(""), HasSubstr("node.yaml: expected a table"));
  EXPECT_THAT(machine_error_of(changed("{flops: 1 MFLOP, rate: 10 TFLOP/s}", "10 TFLOP/s")),
              HasSubstr("accelerator.bf16.value[0] in node.yaml line 11: expected a table"));
  EXPECT_THAT(machine_error_of("name: a\nname: b\n"),
              HasSubstr("'name' in node.yaml line 2 is set twice"));
  EXPECT_THAT(machine_error_of("{[a]: 1}"), HasSubstr("no plain name"));
  EXPECT_THAT(machine_error_of("name: {"), HasSubstr("not YAML"));
  EXPECT_THAT(machine_error_of("a: &a [*a]\n"), ::testing::Not("no error"));
}

TEST(MachineFile, RefusesSizesThatDoNotRise) {
  EXPECT_THAT(machine_error_of(changed("1 GFLOP", "1 MFLOP")), HasSubstr("do not rise"));
}

TEST(MachineFile, RefusesContradictions) {
  const std::string both =
      changed("link:\n", "link:\n  both_bytes_per_s: {value: 60 GB/s, source: measured}\n");
  EXPECT_THAT(machine_error_of(both),
              HasSubstr("link.both_bytes_per_s 60 GB/s is more than up and down"));
  const std::string text = whole;
  const std::size_t from = text.find("  bf16:\n"), to = text.find("  attention_efficiency");
  EXPECT_THAT(machine_error_of(text.substr(0, from) + text.substr(to)), HasSubstr("neither"));
}

TEST(MachineFile, SaysWhichFileIsMissing) {
  try {
    read_machine_file("no/such/machine.yaml");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("no/such/machine.yaml"));
  }
}

std::vector<std::filesystem::path> shipped_files() {
  std::vector<std::filesystem::path> files;
  const std::filesystem::path folder = source_dir() / "configs/machines";
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

TEST(ShippedMachines, AreReadAndReadBack) {
  std::vector<std::string> names;
  for (const std::filesystem::path& file : shipped_files()) {
    SCOPED_TRACE(file);
    names.push_back(file.stem());
    const MachineProfile machine = read_machine_file(file);
    expect_alike(machine, parse_machine_file(machine_file_text(machine), "written"));
  }
  EXPECT_THAT(names, ElementsAre("1xH200", "1xRTX4090-128GB", "4xRTX4090-256GB", "8xA100-80",
                                 "8xH100-80-1TB", "8xH100-80-2TB", "8xH200", "GH200"));
}

TEST(ShippedMachines, SayOfEachValueHowItIsKnown) {
  for (const std::filesystem::path& file : shipped_files()) {
    for (const auto& [key, source] : read_machine_file(file).sources) {
      const bool is_known = source.starts_with("assumed: ") || source.starts_with("derived: ") ||
                            source.starts_with("measured") ||
                            source.find("data sheet") != std::string::npos ||
                            source.find("architecture paper") != std::string::npos;
      EXPECT_TRUE(is_known) << file << " " << key << ": " << source;
    }
  }
}

}  // namespace
}  // namespace strata
