#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "strata/measure/doctor.hpp"
#include "unit/measure/healthy_machine.hpp"

namespace strata {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::vector<Finding> some_findings() {
  return {{"kernel", Health::ok, "Linux 6.8.0", ""},
          {"memlock", Health::degraded, "limit 8 MiB", "first thing\nsecond thing"},
          {"drive /data", Health::broken, "gone", "create it"}};
}

TEST(DoctorReport, PutsEachAdviceOnAnIndentedLineOfItsOwn) {
  EXPECT_EQ(format_findings(some_findings()),
            "ok        kernel       Linux 6.8.0\n"
            "degraded  memlock      limit 8 MiB\n"
            "                       -> first thing\n"
            "                       -> second thing\n"
            "broken    drive /data  gone\n"
            "                       -> create it\n"
            "\n"
            "1 ok, 1 degraded (works, at a cost), 1 broken (a run would fail)\n");
}

TEST(DoctorReport, IsAtMost100ColumnsWide) {
  DoctorFacts facts = healthy_machine();
  facts.drives[0] = healthy_directory("/data/" + std::string(60, 'x'), "nvme0n1");
  facts.drives[1].drive.file_system = "overlay";
  facts.host.locked_bytes = {8 * MiB, 8 * MiB};
  facts.host.huge_pages.mode = "never";
  std::istringstream lines(format_findings(diagnose(facts)));
  int count = 0;
  for (std::string text; std::getline(lines, text); ++count) EXPECT_LE(text.size(), 100u) << text;
  EXPECT_GT(count, 20);
}

TEST(DoctorReport, GivesALongTopicALineOfItsOwn) {
  const std::string topic = "drive /" + std::string(40, 'd');
  EXPECT_THAT(format_findings({{topic, Health::ok, "facts", ""}}),
              HasSubstr("ok        " + topic + "\n          "));
}

TEST(DoctorReport, KeepsAWordThatIsWiderThanThePage) {
  const std::string word(150, 'w');
  EXPECT_THAT(format_findings({{"t", Health::ok, "short " + word + " end", ""}}), HasSubstr(word));
}

TEST(DoctorReport, IsPaintedOnlyWhenAsked) {
  EXPECT_THAT(format_findings(some_findings()), Not(HasSubstr("\x1b")));
  const std::string text = format_findings(some_findings(), Paint::ansi);
  EXPECT_THAT(text, HasSubstr("\x1b[32mok\x1b[0m        kernel"));
  EXPECT_THAT(text, HasSubstr("\x1b[31mbroken\x1b[0m    drive"));
}

TEST(DoctorReport, IsJsonWithAVersionAndTheWorstHealth) {
  const auto json = nlohmann::json::parse(findings_to_json(some_findings()));
  EXPECT_EQ(json["schema_version"], 1);
  EXPECT_EQ(json["health"], "broken");
  ASSERT_EQ(json["findings"].size(), 3u);
  EXPECT_EQ(json["findings"][1]["topic"], "memlock");
  EXPECT_EQ(json["findings"][1]["health"], "degraded");
  EXPECT_EQ(json["findings"][1]["advice"], "first thing\nsecond thing");
}

TEST(DoctorReport, KeepsJsonValidWhateverAPathIsNamed) {
  const std::vector<Finding> findings{{"drive /\xff\"\n", Health::ok, "", ""}};
  EXPECT_TRUE(nlohmann::json::accept(findings_to_json(findings)));
}

TEST(DoctorReport, OfNothingIsOk) {
  EXPECT_EQ(overall_health({}), Health::ok);
  EXPECT_EQ(overall_health(some_findings()), Health::broken);
}

}  // namespace
}  // namespace strata
