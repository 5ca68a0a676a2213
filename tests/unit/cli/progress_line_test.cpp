#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "src/cli/progress_line.hpp"

namespace strata {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

class ProgressLineTest : public ::testing::Test {
 protected:
  std::FILE* stream() const { return file_.get(); }
  std::string written() const {
    std::rewind(file_.get());
    std::string text(4096, '\0');
    text.resize(std::fread(text.data(), 1, text.size(), file_.get()));
    return text;
  }

 private:
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_{std::tmpfile(), &std::fclose};
};

TEST_F(ProgressLineTest, PrintsALinePerTenthWhereNobodyWatches) {
  {
    ProgressLine line(stream(), ProgressShape::lines, Style::plain);
    for (int i = 0; i <= 1000; ++i) line.show("reading", i / 1000.0);
  }
  const std::string text = written();
  EXPECT_EQ(std::ranges::count(text, '\n'), 11);
  EXPECT_THAT(text, AllOf(HasSubstr("  0% reading\n"), HasSubstr(" 50% reading"),
                          EndsWith("100% reading\n"), Not(HasSubstr("\033"))));
}

TEST_F(ProgressLineTest, PrintsNoLineBeforeItsTime) {
  {
    ProgressLine line(stream(), ProgressShape::lines, Style::plain, 1000);
    for (int i = 0; i <= 1000; ++i) line.show("reading", i / 1000.0);
  }
  EXPECT_EQ(written(), "");
}

TEST_F(ProgressLineTest, RedrawsOneBarOnATerminalAndTakesItAway) {
  {
    ProgressLine line(stream(), ProgressShape::bar, Style::plain);
    for (int i = 0; i <= 1000; ++i) line.show("reading", 0.5);
  }
  const std::string text = written();
  EXPECT_THAT(text, AllOf(HasSubstr("\r[============            ]  50% reading"),
                          EndsWith("\r\033[K"), Not(HasSubstr("\n")), Not(HasSubstr("\033[32m"))));
  EXPECT_LT(text.size(), 1000u) << "drawn more often than anybody can see";
}

TEST_F(ProgressLineTest, ColorsTheBarWhereColorsAreWanted) {
  { ProgressLine(stream(), ProgressShape::bar, Style::color).show("x", 1); }
  EXPECT_THAT(written(), HasSubstr("\033[32m"));
}

TEST_F(ProgressLineTest, StaysWithinItsBounds) {
  {
    ProgressLine line(stream(), ProgressShape::bar, Style::plain);
    line.show(std::string(500, 'x'), 7);
  }
  EXPECT_THAT(written(), AllOf(HasSubstr("100%"), Not(HasSubstr(std::string(80, 'x')))));
}

TEST_F(ProgressLineTest, TakesAFileForNoTerminal) {
  EXPECT_EQ(progress_shape(stream()), ProgressShape::lines);
}

}  // namespace
}  // namespace strata
