#include "io/uring/ring.hpp"

#include <array>
#include <cerrno>
#include <memory>
#include <utility>

#include "strata/core/error.hpp"

namespace strata {
namespace {

struct Mode {
  unsigned flags;
  std::string_view name;
};
constexpr std::array<Mode, 4> modes = {{
    {IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN, "single issuer, deferred task work"},
    {IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_COOP_TASKRUN,
     "single issuer, cooperative task work"},
    {IORING_SETUP_COOP_TASKRUN, "cooperative task work"},
    {0, "plain"},
}};

}  // namespace

Ring::Ring(unsigned depth, Enter enter) : enter_(std::move(enter)) {
  set_up(depth);
  require_operations();
  io_uring_register_ring_fd(&ring_);  // saves a look-up per call; older kernels do without
  has_file_table_ = io_uring_register_files_sparse(&ring_, num_files_max) == 0;
  has_buffer_table_ = io_uring_register_buffers_sparse(&ring_, num_buffers_max) == 0;
}

Ring::~Ring() { io_uring_queue_exit(&ring_); }

void Ring::set_up(unsigned depth) {
  int result = -EINVAL;
  for (const Mode& mode : modes) {
    result = io_uring_queue_init(depth, &ring_, mode.flags | IORING_SETUP_CLAMP);
    mode_ = mode.name;
    if (result != -EINVAL) break;
  }
  if (result < 0) throw SystemError("start", "io_uring", -result);
}

void Ring::require_operations() {
  const std::unique_ptr<io_uring_probe, void (*)(io_uring_probe*)> probe(
      io_uring_get_probe_ring(&ring_), io_uring_free_probe);
  if (probe != nullptr && io_uring_opcode_supported(probe.get(), IORING_OP_READ) != 0) return;
  io_uring_queue_exit(&ring_);
  throw SystemError("use", "io_uring (the kernel is older than 5.6)", ENOSYS);
}

int Ring::set_file(unsigned index, int descriptor) {
  const int result = io_uring_register_files_update(&ring_, index, &descriptor, 1);
  return result < 0 ? -result : 0;
}

int Ring::set_buffer(unsigned index, std::span<std::byte> memory) {
  const iovec range = {memory.data(), memory.size()};
  const int result = io_uring_register_buffers_update_tag(&ring_, index, &range, nullptr, 1);
  return result < 0 ? -result : 0;
}

io_uring_sqe& Ring::next_entry() {
  io_uring_sqe* entry = io_uring_get_sqe(&ring_);
  // The ring has more entries than the engine has slots.
  ensure(entry != nullptr);
  return *entry;
}

int Ring::submit_and_wait() {
  const int result = enter_(ring_);
  return result < 0 ? -result : 0;
}

}  // namespace strata
