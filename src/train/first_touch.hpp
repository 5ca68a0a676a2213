#pragma once
// A page lies on the NUMA node of the thread that touches it first. FirstTouch touches the pages of
// a run's memory before anybody uses them, from threads bound to the nodes they shall lie on. No
// call for memory policies: containers often refuse those, and a policy per tile would need more
// mappings than a process may have.
//
// Thread contract: one thread; run() makes its own.

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "strata/plan/plan.hpp"
#include "strata/topology/binding.hpp"

namespace strata {

class FirstTouch {
 public:
  using Bind = std::function<std::string(std::span<const int> cores)>;
  using Spans = std::vector<std::span<std::byte>>;

  // The threads that will work on the memory.
  explicit FirstTouch(std::vector<NodeThreads> threads);

  // One piece per node, in proportion to its threads, as kernels divide a pass over the region.
  void divide(std::span<std::byte> region);
  // Large pages dealt to the nodes in turn: for memory that is used in no such order.
  void interleave(std::span<std::byte> region);

  // What each node is to touch.
  const std::vector<Spans>& spans() const { return spans_; }
  // Writes a zero into each page, on as many threads as will work on it. A thread that is refused
  // its binding touches all the same.
  void run(const Bind& bind) const;

 private:
  std::vector<NodeThreads> threads_;
  std::size_t num_threads_ = 0;
  std::vector<Spans> spans_;  // by position in threads_
};

// The homes and slots in host memory.
std::vector<Region> host_regions(const Plan& plan);

}  // namespace strata
