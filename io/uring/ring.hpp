#pragma once
// A Ring is one io_uring: set up in the best mode the kernel takes, with tables of registered files
// and buffers, and itself registered where the kernel has that.
//
// Thread contract: made, used and destroyed by one thread (the kernel insists, in the best mode).

#include <liburing.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace strata {

class Ring {
 public:
  static constexpr unsigned num_files_max = 64;
  static constexpr unsigned num_buffers_max = 1024;
  static constexpr std::uint64_t buffer_bytes_max = 1ull << 30;  // the kernel's limit

  // Hands prepared entries to the kernel and waits for a completion; returns as system calls of the
  // ring do. Tests put a kernel that refuses in its place.
  using Enter = std::function<int(io_uring&)>;
  static int enter(io_uring& ring) { return io_uring_submit_and_wait(&ring, 1); }

  explicit Ring(unsigned depth, Enter enter = &Ring::enter);  // Throws SystemError.
  ~Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  std::string_view mode() const { return mode_; }
  bool has_file_table() const { return has_file_table_; }
  bool has_buffer_table() const { return has_buffer_table_; }

  // Entries of both tables; each returns 0 or an errno. Descriptor -1 and empty memory clear an
  // entry.
  int set_file(unsigned index, int descriptor);
  int set_buffer(unsigned index, std::span<std::byte> memory);

  io_uring_sqe& next_entry();
  // Hands what was prepared to the kernel and waits until something has completed. Returns 0 or an
  // errno; after a failure what was not accepted stays prepared.
  int submit_and_wait();
  // Takes back what the kernel has not accepted, oldest first: handle(user_data) each. `handle`
  // must prepare nothing.
  template <typename Handle>
  void take_back(Handle&& handle) {
    io_uring_sq& queue = ring_.sq;
    const unsigned head = io_uring_smp_load_acquire(queue.khead);
    for (unsigned at = head; at != queue.sqe_tail; ++at) {
      handle(queue.sqes[at & queue.ring_mask].user_data);
    }
    queue.sqe_head = queue.sqe_tail = head;
    io_uring_smp_store_release(queue.ktail, head);
  }

  // Calls handle(user_data, result) for everything that has completed.
  template <typename Handle>
  void reap(Handle&& handle) {
    io_uring_cqe* cqe = nullptr;
    while (io_uring_peek_cqe(&ring_, &cqe) == 0) {
      const std::uint64_t user_data = cqe->user_data;
      const int result = cqe->res;
      io_uring_cqe_seen(&ring_, cqe);
      handle(user_data, result);
    }
  }

 private:
  void set_up(unsigned depth);
  void require_operations();

  const Enter enter_;
  io_uring ring_ = {};
  std::string_view mode_;
  bool has_file_table_ = false;
  bool has_buffer_table_ = false;
};

}  // namespace strata
