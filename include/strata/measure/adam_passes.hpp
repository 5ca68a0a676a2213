#pragma once
// The optimizer's passes over parameters of its own making, for whoever wants to time them: the
// update in one layout of its state, the gradient norm that comes before it, and the rooflines of
// both. Threads and memory are placed as a run places those of its update lane.
//
// Thread contract: one thread, which is bound to the first NUMA node and works along.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "strata/kernels/update.hpp"

namespace strata {

// What a pass is asked to work on; the working weight is bf16.
struct AdamLayout {
  UpdateRule rule = UpdateRule::adamw;
  DType gradient = DType::bf16;  // f32 or bf16
  DType master = DType::f32;     // f32; or u16: split
  DType moments = DType::f32;    // f32, bf16 or q8
  bool operator==(const AdamLayout&) const = default;
};

// "bf16/split/q8": gradient, master, moments; the rule is told apart.
std::string state_layout_name(const AdamLayout& layout);
AdamLayout parse_state_layout(std::string_view name, UpdateRule rule);  // Throws ConfigError.
std::vector<AdamLayout> all_state_layouts(UpdateRule rule);

// Bytes of a parameter's state at home, the working weight apart, and those one pass moves.
double state_bytes(const AdamLayout& layout);
double update_pass_bytes(const AdamLayout& layout);
// Memory that AdamPasses takes.
std::uint64_t adam_passes_bytes(const AdamLayout& layout, std::int64_t count);

class AdamPasses {
 public:
  // `num_threads` 0: one for each core that this process may use. Throws OutOfMemory.
  AdamPasses(const AdamLayout& layout, std::int64_t count, int num_threads);
  ~AdamPasses();

  // Sums the squares of the gradient; later updates clip it to a norm of 1.
  void norm();
  // The next step of the optimizer.
  void update();
  // The same bytes in the same order by the same number of threads, next to no arithmetic. The
  // state stays what it is; a weight that is only written is zero after it.
  void touch_norm();
  void touch_update();

  std::span<const std::byte> memory() const;
  std::span<const bfloat16> weight() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace strata
