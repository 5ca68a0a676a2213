#pragma once
// DrainEpochs tells when everything begun before a moment has ended, though later things go on
// beginning and ending: each request belongs to the epoch it began in, and a drain closes the
// epoch.
//
// Thread contract: none of its own; the RequestBoard guards it.

#include <cstdint>
#include <vector>

namespace strata {

class DrainEpochs {
 public:
  std::uint64_t begin();
  void end(std::uint64_t epoch);
  // Closes the current epoch: everything begun so far has ended once `passed(close())`.
  std::uint64_t close();
  bool passed(std::uint64_t epoch) const { return epoch < first_; }

 private:
  void drop_finished();

  std::uint64_t first_ = 0;  // the oldest epoch not passed
  std::vector<std::uint64_t> counts_ = {
      0};  // of epochs first_, first_ + 1 ...; the last one is open
};

}  // namespace strata
