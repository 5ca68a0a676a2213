#include "job_failure.hpp"

#include <utility>

namespace strata {

void JobFailure::fail(const Lock&, std::string reason) {
  if (has_failed()) return;
  reason_ = reason.empty() ? "aborted for no given reason" : std::move(reason);
  has_failed_.store(true, std::memory_order_release);
  for (std::condition_variable* line : lines_) line->notify_all();
}

}  // namespace strata
