#include "train/run_buffers.hpp"

#include "strata/checkpoint/state_checkpoint.hpp"
#include "strata/train/durable_state.hpp"
#include "train/state_loader.hpp"
#include "train/state_saver.hpp"
#include "train/weights_io.hpp"

namespace strata {
namespace {

// Now, or when it is started again: what fits once should fit then.
bool may_resume(const RunConfig& config) {
  return saves_state(config) || config.offload.versioned || !config.resume_from_checkpoint.empty();
}

std::uint64_t load_bytes(const RunConfig& config, const Program& program) {
  std::uint64_t bytes = load_buffer_bytes(program);
  if (may_resume(config)) bytes = std::max(bytes, resume_buffer_bytes(program));
  if (config.offload.versioned) bytes = std::max(bytes, durable_load_bytes(program));
  return bytes;
}

// What is saved beside training passes through buffers of the plan's own.
std::uint64_t save_bytes(const RunConfig& config, const PlannedRun& run, const Policy& policy) {
  const std::uint64_t exports = export_buffer_bytes(run.program, exported_dtype(config, run));
  if (!saves_state(config)) return exports;
  const std::uint64_t buffers = policy.background_saves ? 0 : save_buffer_bytes(run.program);
  return std::max(exports, buffers + checkpoint_read_memory_bytes);
}

}  // namespace

RunBuffers run_buffers(const RunConfig& config, Purpose purpose, const PlannedRun& run,
                       const Policy& policy) {
  if (purpose == Purpose::evaluate) return {load_buffer_bytes(run.program), 0};
  return {load_bytes(config, run.program), save_bytes(config, run, policy)};
}

TierLimits with_buffers(TierLimits limits, const RunConfig& config, Purpose purpose,
                        const PlannedRun& run, const Policy& policy) {
  limits.buffer_bytes = run_buffers(config, purpose, run, policy).most();
  return limits;
}

}  // namespace strata
