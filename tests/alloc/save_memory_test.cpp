// What a process holds while it saves again and again: heap, memory and descriptors do not grow
// with the number of saves, and a save adds no more to the process than its plan says.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "alloc/allocation_counter.hpp"
#include "sim/tiny_training.hpp"
#include "strata/core/bytes.hpp"
#include "strata/train/forecast.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;
using testing::allocation_count;

constexpr std::int64_t num_saves = 20;

// A line of /proc/self/status in bytes.
std::int64_t status_bytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::int64_t kib = 0;
    if (word == name + ":" && status >> kib) return kib * 1024;
  }
  return 0;
}

// From now on VmHWM is the peak since now. False where the kernel does not allow it.
bool forget_peak() {
  return static_cast<bool>(std::ofstream("/proc/self/clear_refs") << "5" << std::flush);
}

std::int64_t num_descriptors() {
  return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
}

struct Held {
  std::int64_t heap_bytes = 0, resident_bytes = 0, descriptors = 0;
};
Held held_now() {
  return {allocation_count().live_bytes, status_bytes("VmRSS"), num_descriptors()};
}

// The least of each over some moments: what is held for a time only does not count.
Held least(std::span<const Held> moments) {
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  Held least{most, most, most};
  for (const Held& held : moments) {
    least.heap_bytes = std::min(least.heap_bytes, held.heap_bytes);
    least.resident_bytes = std::min(least.resident_bytes, held.resident_bytes);
    least.descriptors = std::min(least.descriptors, held.descriptors);
  }
  return least;
}

RunConfig run_that_saves() {
  RunConfig config = testing::tiny_config(testing::tiny_files());
  config.evaluate = false;
  config.save_total_limit = 2;
  config.offload.master = config.offload.moment1 = config.offload.moment2 = {0, 0.5, 0.5};
  return config;
}

// Calls `at_step` before the first op of each step.
ExecutorOptions watching(const std::function<void(std::int64_t step)>& at_step) {
  ExecutorOptions options;
  options.before_op = [at_step, step = std::make_shared<std::int64_t>(0)](const Op& op) {
    if (op.id == OpId{0}) at_step((*step)++);
  };
  return options;
}

TEST(Saves, HoldNoMoreTheMoreThereAre) {
  RunConfig config = run_that_saves();
  config.save_steps = 1;
  config.max_steps = num_saves + 2;
  std::vector<Held> moments;
  moments.reserve(num_saves + 2);
  testing::TrainingRun run(config, watching([&](std::int64_t) { moments.push_back(held_now()); }));
  const TrainOutcome outcome = run.train();
  EXPECT_FALSE(outcome.checkpoint.empty());
  ASSERT_EQ(moments.size(), static_cast<std::size_t>(config.max_steps));
  // The first two have things to make that stay.
  const auto steady = std::span(moments).subspan(2);
  const Held first = least(steady.first(6)), last = least(steady.last(6));
  std::printf("  over %d saves: heap %+d bytes, resident %+d KiB, descriptors %+d\n",
              static_cast<int>(num_saves), static_cast<int>(last.heap_bytes - first.heap_bytes),
              static_cast<int>((last.resident_bytes - first.resident_bytes) / 1024),
              static_cast<int>(last.descriptors - first.descriptors));
  EXPECT_LE(last.heap_bytes, first.heap_bytes + 64 * std::int64_t{KiB});
  EXPECT_LE(last.resident_bytes, first.resident_bytes + 8 * std::int64_t{MiB});
  EXPECT_LE(last.descriptors, first.descriptors);
}

TEST(Saves, AddNoMoreToTheProcessThanPlanned) {
  RunConfig config = run_that_saves();
  constexpr std::int64_t quiet_steps = 4;
  config.save_steps = quiet_steps + 1;
  config.max_steps = 3 * (quiet_steps + 1);
  std::int64_t before = 0;
  bool can_measure = false;
  testing::TrainingRun run(config, watching([&](std::int64_t step) {
                             if (step != quiet_steps) return;
                             can_measure = forget_peak();
                             before = status_bytes("VmRSS");
                           }));
  const PlannedRun& planned = run.session().run();
  const std::uint64_t allowed =
      run_facts(config, planned, 1).save_bytes + planned.plan.save_buffers.bytes;
  run.train();
  if (!can_measure) GTEST_SKIP() << "the kernel does not let a process forget its peak here";
  const std::int64_t added = status_bytes("VmHWM") - before;
  std::printf("  a save adds %d KiB, planned %d KiB\n", static_cast<int>(added / 1024),
              static_cast<int>(allowed / 1024));
  // Stacks of threads, lists of pieces and the like.
  constexpr std::int64_t slack = 4 * std::int64_t{MiB};
  EXPECT_LE(added, static_cast<std::int64_t>(allowed) + slack);
  EXPECT_GE(added, std::int64_t{MiB}) << "nothing was measured";
}

}  // namespace
}  // namespace strata
