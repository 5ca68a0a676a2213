#pragma once
// Every IoEngine there is, for the suites that all of them must pass.

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "contract/io/io_testing.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"

namespace strata::testing {

struct EngineCase {
  std::string name;
  std::function<std::unique_ptr<IoEngine>()> make;
};

inline std::vector<EngineCase> engine_cases() {
  static const IoOptions small_pieces = {
      .queue_depth = 8, .chunk_bytes = 64 * KiB, .num_threads = 3};
  return {
      {"uring", [] { return make_uring_engine(small_pieces); }},
      {"threads", [] { return make_threads_engine(small_pieces); }},
      {"sim", [] { return make_sim_engine({.chunk_bytes = 64 * KiB}); }},
      {"sim_512", [] { return make_sim_engine({.alignment = 512, .chunk_bytes = 64 * KiB}); }},
      {"sim_unruly",
       [] {
         return make_sim_engine({.seed = 7,
                                 .latency_us_max = 50,
                                 .short_transfer_probability = 0.3,
                                 .again_probability = 0.2,
                                 .chunk_bytes = 64 * KiB});
       }},
  };
}

// An engine, a directory, and the usual transfers between them.
class EngineTest : public ::testing::TestWithParam<EngineCase> {
 protected:
  void SetUp() override {
    try {
      engine_ = GetParam().make();
    } catch (const SystemError& error) {
      GTEST_SKIP() << GetParam().name << " is refused here: " << error.what();
    }
  }
  FileId open(const std::string& name, Caching caching = Caching::direct) {
    return engine_->open(directory_.file(name), OpenMode::read_write_create, caching);
  }
  void write(FileId file, std::uint64_t offset, const Buffer& data) {
    const IoResult result = run(*engine_, IoOp::write, file, offset, data.span());
    ASSERT_TRUE(result.ok()) << result.message;
    ASSERT_EQ(result.bytes, data.bytes());
  }
  Buffer read(FileId file, std::uint64_t offset, std::uint64_t bytes) {
    Buffer data(bytes);
    const IoResult result = run(*engine_, IoOp::read, file, offset, data.span());
    EXPECT_TRUE(result.ok()) << result.message;
    EXPECT_EQ(result.bytes, bytes);
    return data;
  }

  TempDirectory directory_;
  std::unique_ptr<IoEngine> engine_;
};

}  // namespace strata::testing
