#include "strata/core/svg_chart.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "src/core/svg_chart_parts.hpp"

namespace strata {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

int occurrences(const std::string& text, const std::string& word) {
  int count = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
    ++count;
  return count;
}

// The tags of a document, in order: "svg", "/svg", "rect/".
std::vector<std::string> tags_of(const std::string& text) {
  std::vector<std::string> tags;
  for (std::size_t at = text.find('<'); at != std::string::npos; at = text.find('<', at + 1)) {
    const std::size_t end = text.find('>', at);
    if (end == std::string::npos) return {"unclosed"};
    const std::string tag = text.substr(at + 1, end - at - 1);
    tags.push_back(tag.substr(0, tag.find(' ')) + (tag.ends_with('/') ? "/" : ""));
  }
  return tags;
}

bool is_well_formed(const std::string& text) {
  std::vector<std::string> open;
  for (const std::string& tag : tags_of(text)) {
    if (tag.ends_with('/')) continue;
    if (!tag.starts_with('/')) {
      open.push_back(tag);
    } else {
      if (open.empty() || "/" + open.back() != tag) return false;
      open.pop_back();
    }
  }
  return open.empty() && text.starts_with("<svg ");
}

std::string drawn(const auto& chart) {
  SvgDocument document;
  document.add(chart);
  return document.text();
}

LineChart two_lines() {
  return {"bandwidth", "s", "GB/s", {{"one", {0, 1, 2}, {3, 2, 1}}, {"two", {0, 1}, {1, 1}}}, {}};
}

TEST(SvgDocument, IsWellFormedWithAnyCharts) {
  SvgDocument document;
  document.add(two_lines());
  document.add(BarChart{"bars", "GB/s", {"a", "b"}, {{"x", {{1, 0.5, 2}, {2, 2, 2}}}}});
  document.add(HeatMap{"map", "depth", "block", "GB/s", {"1", "2"}, {"4 KiB"}, {{1, 2}}});
  EXPECT_TRUE(is_well_formed(document.text())) << document.text();
  EXPECT_TRUE(is_well_formed(SvgDocument().text()));
}

TEST(SvgDocument, NeedsNothingFromElsewhere) {
  const std::string text = drawn(two_lines());
  EXPECT_THAT(text, AllOf(Not(HasSubstr("<script")), Not(HasSubstr("href")),
                          Not(HasSubstr("@import")), Not(HasSubstr("url("))));
  EXPECT_THAT(text, HasSubstr("prefers-color-scheme: dark"));
}

TEST(SvgDocument, GrowsWithEachChart) {
  SvgDocument document;
  const auto height = [&] {
    const std::string text = document.text();
    const std::string key = " height=\"";
    return std::stod(text.substr(text.find(key) + key.size()));
  };
  const double none = height();
  document.add(two_lines());
  const double one = height();
  document.add(two_lines());
  EXPECT_GT(one, none);
  EXPECT_NEAR(height(), 2 * one, 1);
}

TEST(SvgDocument, EscapesTextsOfTheWorld) {
  LineChart chart = two_lines();
  chart.title = "<script>alert('x')</script> & \"more\"";
  chart.series[0].name = "/mnt/\x01\xff/a\xc3\xa9";
  const std::string text = drawn(chart);
  EXPECT_THAT(text, HasSubstr("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; &amp; &quot;more"));
  EXPECT_THAT(text, HasSubstr("/mnt/?"
                              "?/a\xc3\xa9"));
  EXPECT_TRUE(is_well_formed(text));
}

TEST(SvgText, ReplacesWhatUtf8OrXmlForbids) {
  EXPECT_EQ(svg::escape("\xc0\xaf"), "??") << "overlong";
  EXPECT_EQ(svg::escape("\xed\xa0\x80"), "???") << "surrogate";
  EXPECT_EQ(svg::escape("\xef\xbf\xbf"), "???") << "no character";
  EXPECT_EQ(svg::escape("\xf4\x90\x80\x80"), "????") << "beyond Unicode";
  EXPECT_EQ(svg::escape("a\xe2\x82"), "a??") << "cut off";
  EXPECT_EQ(svg::escape("\xe2\x82\xac\xf0\x9f\x98\x80"), "\xe2\x82\xac\xf0\x9f\x98\x80");
}

TEST(SvgTicks, AreRoundAndCoverTheRange) {
  EXPECT_THAT(svg::nice_ticks(0, 3.4, 4).values, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(svg::nice_ticks(0, 100, 5).values, ElementsAre(0, 20, 40, 60, 80, 100));
  EXPECT_EQ(svg::nice_ticks(0, 0.03, 3).decimals, 2);
  for (const double high : {1e-9, 0.7, 3.0, 12345.0, 7e12}) {
    const svg::Ticks ticks = svg::nice_ticks(0, high, 6);
    EXPECT_LE(ticks.low, 0);
    EXPECT_GE(ticks.high, high);
    EXPECT_LE(ticks.values.size(), 8u);
  }
}

TEST(SvgTicks, ExistForARangeThatIsAPoint) {
  for (const double value : {0.0, 5.0, -3.0}) {
    const svg::Ticks ticks = svg::nice_ticks(value, value, 5);
    EXPECT_LT(ticks.low, ticks.high);
    EXPECT_LE(ticks.low, value);
    EXPECT_GE(ticks.high, value);
  }
}

TEST(SvgTicks, ExistForRangesThatDoublesCannotDivide) {
  for (const auto& [low, high] : std::vector<std::pair<double, double>>{
           {1e17, 1e17 + 32}, {0, 5e-324}, {0, 1.7e308}, {-1.7e308, 1.7e308}, {1, 1 + 1e-15}}) {
    const svg::Ticks ticks = svg::nice_ticks(low, high, 8);
    EXPECT_LT(ticks.low, ticks.high);
    EXPECT_LE(ticks.values.size(), 12u);
  }
}

TEST(LineChart, DrawsOneLinePerSeriesNamedInTheLegend) {
  const std::string text = drawn(two_lines());
  EXPECT_EQ(occurrences(text, "<polyline"), 2);
  EXPECT_THAT(text, AllOf(HasSubstr(">one</text>"), HasSubstr(">two</text>"),
                          HasSubstr(">GB/s</text>"), HasSubstr(">bandwidth</text>")));
}

TEST(LineChart, BreaksTheLineWhereThereIsNoValue) {
  LineChart chart{"", "", "", {{"a", {0, 1, 2, 3, 4}, {1, 1, nan, 1, 1}}}, {}};
  const std::string text = drawn(chart);
  EXPECT_EQ(occurrences(text, "<polyline"), 2);
  EXPECT_THAT(text, Not(HasSubstr("nan")));
}

TEST(LineChart, DrawsMarksWithTheirWords) {
  LineChart chart = two_lines();
  chart.marks = {{1, "knee at 1 s"}};
  const std::string text = drawn(chart);
  EXPECT_EQ(occurrences(text, "class=\"mark\""), 1);
  EXPECT_THAT(text, HasSubstr(">knee at 1 s</text>"));
}

TEST(LineChart, StandsWithoutAnyPoint) {
  EXPECT_TRUE(is_well_formed(drawn(LineChart{})));
  EXPECT_TRUE(is_well_formed(drawn(LineChart{"", "", "", {{"empty", {}, {}}}, {}})));
}

TEST(LineChart, PutsHigherValuesHigher) {
  const svg::Frame frame = svg::make_frame(0, svg::nice_ticks(0, 10, 5), svg::nice_ticks(0, 10, 5));
  EXPECT_LT(frame.py(9), frame.py(1));
  EXPECT_LT(frame.px(1), frame.px(9));
  EXPECT_DOUBLE_EQ(frame.py(0), frame.bottom());
}

TEST(BarChart, DrawsWhiskersWhereThereIsSpread) {
  const BarChart chart{
      "", "GB/s", {"read", "write"}, {{"strata", {{3.5, 3.4, 3.6}, {1.5, 1.5, 1.5}}}}};
  const std::string text = drawn(chart);
  EXPECT_EQ(occurrences(text, "class=\"whisker\""), 1);
  EXPECT_THAT(text, AllOf(HasSubstr(">3.50</text>"), HasSubstr(">1.50</text>")));
}

TEST(BarChart, LeavesOutWhatWasNotMeasured) {
  const BarChart chart{"", "", {"read"}, {{"strata", {{1, 1, 1}}}, {"fio", {{nan, 0, 0}}}}};
  EXPECT_THAT(drawn(chart), Not(HasSubstr("nan")));
}

TEST(HeatMap, WritesEachValueIntoItsCell) {
  const HeatMap map{
      "t", "depth", "block", "GB/s", {"1", "8"}, {"1 MiB", "4 MiB"}, {{1.5, 2.5}, {3.5, nan}}};
  const std::string text = drawn(map);
  for (const char* value : {">1.50<", ">2.50<", ">3.50<", ">-<", ">1 MiB<", ">8<"})
    EXPECT_THAT(text, HasSubstr(value));
  EXPECT_EQ(occurrences(text, "class=\"best\""), 1);
  EXPECT_THAT(text, HasSubstr(">t, GB/s</text>"));
}

TEST(HeatMap, TakesMapsOfOneValueOrNone) {
  EXPECT_TRUE(is_well_formed(drawn(HeatMap{})));
  EXPECT_TRUE(is_well_formed(drawn(HeatMap{"", "", "", "", {"a"}, {"b"}, {{2}}})));
  EXPECT_THAT(drawn(HeatMap{"", "", "", "", {"a"}, {"b"}, {{nan}}}), Not(HasSubstr("best\"")));
}

}  // namespace
}  // namespace strata
