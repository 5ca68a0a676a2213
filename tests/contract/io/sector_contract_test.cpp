// Sectors and tails, on every engine; what must hold is in sector_checks.hpp.

#include "contract/io/sector_checks.hpp"

#include <gtest/gtest.h>

#include "contract/io/engine_cases.hpp"

namespace strata::testing {
namespace {

class SectorContract : public EngineTest {
 protected:
  void SetUp() override {
    EngineTest::SetUp();
    if (engine_ == nullptr) return;
    const FileInfo info = engine_->info(open("probe"));
    if (!info.direct) GTEST_SKIP() << info.note;
  }
};

INSTANTIATE_TEST_SUITE_P(Engines, SectorContract, ::testing::ValuesIn(engine_cases()),
                         [](const auto& engine) { return engine.param.name; });

TEST_P(SectorContract, MovesAnyNumberOfSectorsFromAnySectorToMemoryAlignedAlike) {
  check_whole_sectors(*engine_, directory_.file("tiles"));
}

TEST_P(SectorContract, RefusesHalfASector) {
  check_half_sectors(*engine_, directory_.file("tiles"));
}

TEST_P(SectorContract, ReadsWholeSectorsDirectlyAndTheTailBuffered) {
  check_tails(*engine_, directory_.file("tiles"));
}

TEST_P(SectorContract, ReportsADirectReadAcrossAnOddEndWithTheLength) {
  check_reads_across_an_odd_end(*engine_, directory_.file("tiles"));
}

TEST_P(SectorContract, AWholeSectorWrittenOverATailMakesTheFileLonger) {
  check_sector_over_tail(*engine_, directory_.file("tiles"));
}

}  // namespace
}  // namespace strata::testing
