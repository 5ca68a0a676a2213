#include "strata/core/bytes.hpp"

#include <gtest/gtest.h>

#include "strata/core/error.hpp"

namespace strata {
namespace {

TEST(Bytes, ReadsSizesWithAndWithoutUnits) {
  EXPECT_EQ(parse_bytes("4096"), 4096u);
  EXPECT_EQ(parse_bytes("4096 B"), 4096u);
  EXPECT_EQ(parse_bytes("64MiB"), 64 * MiB);
  EXPECT_EQ(parse_bytes(" 1.5 GiB "), 3 * GiB / 2);
  EXPECT_EQ(parse_bytes("2e9"), 2'000'000'000u);
  EXPECT_EQ(parse_bytes("3 GB"), 3'000'000'000u);
  EXPECT_EQ(parse_bytes("1TiB"), 1024 * GiB);
  EXPECT_EQ(parse_bytes("0"), 0u);
}

TEST(Bytes, RefusesWhatIsNoSizeAndQuotesIt) {
  for (const char* text : {"", "MiB", "12 parsecs", "-1", "1e30", "nan", "10 mib", "0x10"}) {
    try {
      parse_bytes(text);
      ADD_FAILURE() << "accepted " << text;
    } catch (const ConfigError& error) {
      EXPECT_NE(std::string(error.what()).find(std::string("'") + text + "'"), std::string::npos)
          << error.what();
    }
  }
}

TEST(Bytes, PrintsThreeSignificantDigits) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.00 KiB");
  EXPECT_EQ(format_bytes(3 * MiB / 2), "1.50 MiB");
  EXPECT_EQ(format_bytes(234 * GiB / 10), "23.4 GiB");
  EXPECT_EQ(format_bytes(999 * MiB), "999 MiB");
  EXPECT_EQ(format_bytes(1023 * MiB), "1.00 GiB");
}

TEST(Bytes, AlignsUpwards) {
  EXPECT_EQ(align_up(0, 4096), 0u);
  EXPECT_EQ(align_up(1, 4096), 4096u);
  EXPECT_EQ(align_up(4096, 4096), 4096u);
  EXPECT_EQ(ceil_div(7, 3), 3);
  EXPECT_EQ(ceil_div(6, 3), 2);
}

}  // namespace
}  // namespace strata
