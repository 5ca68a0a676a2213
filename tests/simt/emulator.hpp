#pragma once
// Runs kernels of kernels/cuda on the CPU, one launch at a time: blocks one after another, the
// threads of a block as fibers, in an order that follows from the seed. Takes the place of a launch
// on a stream; emulated_api.hpp is what the kernels see. The first fault a launch finds is thrown
// as a Fault that names kernel, block and thread. Thread contract: one thread.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/cuda/launch_shape.hpp"
#include "simt/fault.hpp"
#include "simt/fiber.hpp"
#include "simt/shadow.hpp"
#include "strata/core/philox.hpp"

namespace strata::simt {

inline constexpr int warp_lanes = 32;
inline constexpr std::size_t exchange_bytes = 64;

// What one lane brings to an operation of its warp.
struct alignas(16) LaneValue {
  std::array<std::byte, exchange_bytes> bytes;
};
using WarpValues = std::array<LaneValue, warp_lanes>;

enum class ThreadState : std::uint8_t { ready, at_block_barrier, at_warp_operation, done };
enum class WarpOperation : std::uint8_t { barrier, exchange };

struct AsyncCopy {
  std::byte* to;
  const std::byte* from;
  std::int64_t shared_offset;
  std::size_t element_bytes;
};

struct EmulatedThread {
  Fiber fiber;
  ThreadState state = ThreadState::ready;
  WarpOperation operation = WarpOperation::barrier;
  std::source_location where;
  std::uint32_t operations = 0;  // of its warp so far: tells which of two value arrays is whose
  std::vector<std::vector<AsyncCopy>> committed;
  std::vector<AsyncCopy> started;
};

class Emulator {
 public:
  explicit Emulator(std::uint64_t seed = 0, const cuda::DeviceLimits& limits = {})
      : seed_(seed), limits_(limits) {}

  const cuda::DeviceLimits& limits() const { return limits_; }
  template <class... Parameters, class... Arguments>
  void launch(std::string_view kernel_name, void (*kernel)(Parameters...),
              const cuda::LaunchShape& shape, const Arguments&... arguments) {
    run(kernel_name, shape, [&] { kernel(arguments...); });
  }

  // --- For emulated_api.hpp: called by the thread that runs now.
  static Emulator& running();
  const cuda::LaunchShape& shape() const { return shape_; }
  int thread_index() const { return thread_; }
  std::int64_t block_x() const { return block_ % shape_.grid_x; }
  std::int64_t block_y() const { return block_ / shape_.grid_x; }
  std::byte* shared_memory() { return shared_.get(); }

  void sync_threads(const std::source_location& where);
  void sync_warp(const std::source_location& where);
  // What the 32 lanes brought, valid until the caller's next operation of its warp.
  const WarpValues& exchange(const LaneValue& mine, const std::source_location& where);

  void touch_global(const void* address, std::size_t element_bytes, int num_elements, Touch how);
  void touch_shared(std::int64_t offset, std::size_t element_bytes, int num_elements, Touch how);
  void start_copy(const AsyncCopy& copy);
  void commit_copies();
  void wait_copies(std::size_t pending_groups);

  [[noreturn]] void fail(FaultKind kind, const std::string& what) const;
  std::uint64_t num_launches() const { return num_launches_; }

 private:
  static constexpr int threads_max = 1024;

  void run(std::string_view kernel_name, const cuda::LaunchShape& shape,
           const std::function<void()>& body);
  void check_shape() const;
  void run_block(const std::function<void()>& body);
  void start_threads(const std::function<void()>& body);
  void run_thread(const std::function<void()>& body);
  void run_warp(int warp);
  bool run_lanes(int warp);
  bool finish_warp_operation(int warp);
  bool release_block_barrier();
  void pause(ThreadState state, const std::source_location& where);
  EmulatedThread& thread(int index) { return *threads_[static_cast<std::size_t>(index)]; }
  Toucher toucher() const;
  [[noreturn]] void diverged(int first, int second);
  std::string place(int thread) const;
  void finish_group(EmulatedThread& thread);
  void rethrow_fault();

  // The order of things, drawn once a launch.
  std::vector<std::int64_t> shuffled(std::int64_t count);

  // Constant.
  std::uint64_t seed_;
  cuda::DeviceLimits limits_;
  // Of the launch.
  std::string kernel_name_;
  cuda::LaunchShape shape_;
  std::vector<std::unique_ptr<EmulatedThread>> threads_;
  std::optional<Fault> fault_;
  GlobalShadow global_;
  std::uint64_t num_launches_ = 0;
  PhiloxStream random_{0, 0};
  std::uint32_t time_ = 1;  // goes on from launch to launch
  std::uint32_t launch_time_ = 1;
  // Of the block that runs.
  std::int64_t block_ = 0;
  int thread_ = 0;
  std::uint32_t block_time_ = 0;
  std::vector<std::uint32_t> warp_times_;
  std::vector<std::array<WarpValues, 2>> warp_values_;
  std::vector<std::int64_t> warp_order_, lane_order_;
  std::unique_ptr<std::byte[]> shared_;
  std::vector<ShadowCell> shared_cells_;
};

}  // namespace strata::simt
