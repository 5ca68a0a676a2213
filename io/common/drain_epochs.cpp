#include "io/common/drain_epochs.hpp"

#include <cstddef>

#include "strata/core/error.hpp"

namespace strata {

std::uint64_t DrainEpochs::begin() {
  ++counts_.back();
  return first_ + counts_.size() - 1;
}

void DrainEpochs::end(std::uint64_t epoch) {
  ensure(epoch >= first_ && epoch - first_ < counts_.size());
  std::uint64_t& count = counts_[epoch - first_];
  ensure(count > 0);
  --count;
  drop_finished();
}

std::uint64_t DrainEpochs::close() {
  const std::uint64_t closed = first_ + counts_.size() - 1;
  counts_.push_back(0);
  drop_finished();
  return closed;
}

void DrainEpochs::drop_finished() {
  std::size_t num_finished = 0;
  while (num_finished + 1 < counts_.size() && counts_[num_finished] == 0) ++num_finished;
  counts_.erase(counts_.begin(), counts_.begin() + static_cast<std::ptrdiff_t>(num_finished));
  first_ += num_finished;
}

}  // namespace strata
